"""Reads a page as a browser would, but strictly: what is not well-formed is an error."""

from __future__ import annotations

from html.parser import HTMLParser

#: Elements of HTML that have no end.
VOID = {"meta", "br"}


class Reader(HTMLParser):
    """Tags as they nest, texts, ids, and every attribute; `AssertionError` where a tag is not closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, str] = {}
        self.by_id: dict[str, str] = {}
        self._ids: list[str | None] = []
        self.feed(page)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"{tag} has an attribute twice: {names}"
        values = {name: value or "" for name, value in attrs}
        self.tags.append((tag, values))
        if tag not in VOID:
            self.open.append(tag)
            self._ids.append(values.get("id"))
        if "id" in values:
            assert values["id"] not in self.by_id, f"two elements called {values['id']}"
            self.by_id[values["id"]] = ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"{tag} was never open"
        assert self.open[-1] == tag, f"{tag} closes {self.open[-1]}"
        self.open.pop()
        self._ids.pop()

    def handle_data(self, data: str) -> None:
        place = self.open[-1] if self.open else ""
        self.texts[place] = self.texts.get(place, "") + data
        for name in self._ids:
            if name is not None:
                self.by_id[name] += data

    def all(self, tag: str) -> list[dict[str, str]]:
        """The attributes of every element of that name."""
        return [values for name, values in self.tags if name == tag]
