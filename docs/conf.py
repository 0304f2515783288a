"""The site's settings for Sphinx; `make docs` builds it (tools/site.py)."""

from lstmsim import __version__

project = "lstmsim"
author = "The lstmsim developers"
copyright = author
version = release = __version__

extensions = ["myst_nb"]
# two hyphens begin an option
smartquotes = False
source_suffix = {".md": "myst-nb"}
myst_enable_extensions = ["colon_fence"]
# headings of four levels can be linked to, as on code hosts
myst_heading_anchors = 4
# Every page is run when the site is built, in a folder of its own; a cell that fails is an error.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

html_theme = "furo"
html_title = "lstmsim"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
# Nothing is loaded from elsewhere: the site and its search work without a network.
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
# code with a contrast of at least 4.5 to its ground (the package comes with furo)
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
