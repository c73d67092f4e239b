"""The list model: a cache is the list of its tokens, and *visible* is one line.

It follows the contract of an adapter. Instead of arrays it has rows known by their serials (`rows.Rows`): appended
rows have names, and a read gives a list of names. A mask says what each query sees; an output comes with the error
that an implementation may make. It says nothing of what depends on where rows are stored."""
