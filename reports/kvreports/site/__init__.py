"""The spec as a site of plain files: every clause has an address, `/RING-19`, that people can cite.

Why these tools. Most of a page is computed: the drawn examples of a clause, what each adapter got, the bugs it
was paid for. mkdocs-material and Sphinx start from pages that somebody wrote: we would write 500 computed pages
as Markdown or reST for them to read again, and carry their themes and search. jinja2 already makes the pages of
reports, in our style and without any request to a network; markdown-it-py (CommonMark, one small dependency)
reads the chapters.
"""
