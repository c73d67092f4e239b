"""The spec as a site of plain files: every clause has an address, `/RING-19`, that people can cite.

Why these tools. Most of a page is computed: the drawn examples of a clause, what each adapter got, the bugs it was
paid for. Texts of records come from other people. So every page has a policy under which only the site's own files
run. The site can be read without a server too. jinja2 makes the pages, as it makes reports. markdown-it-py, one
small dependency, reads the chapters as CommonMark.

mkdocs-material was tried with these 579 pages (9.8.2, November 2026): 146 MB, 248 KB a page and 27 CPU seconds.
This site has 24 MB and takes 21 CPU seconds with all drawings. There were three inline scripts a page, which the
policy would have to allow, and a search that needs a server. MkDocs has had no release since 2024, the theme gets
security fixes alone, and its successor is at 0.0.73. What they would bring is here: navigation, contents, search
with `/`, two themes.
"""
