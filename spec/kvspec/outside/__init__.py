"""What comes from outside: files and JSON, which may be wrong or mean harm, and names that are misspelt."""
