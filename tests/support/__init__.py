"""What tests share: fakes, sample records, and how an adapter is judged in a test."""
