"""The same records written in many ways: as other programs, and people, may write TOML.

While it writes, a `Formatter` notes on which line each field begins, which is what errors are held
against. It shares no code with the package's reader and writer of records.
"""

import json


class Formatter:
    """Writes one file, in a way that `rng` chooses; the field at `wrong` gets the text `value`."""

    def __init__(self, rng, wrong=None, value=""):
        self.rng, self.wrong, self.value = rng, wrong, value
        self.text = ""
        self.lines = {}

    def line_of(self, path):
        """The line of a field, or of what is nearest around it that has a line of its own."""
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def file(self, document):
        """The text of a file."""
        rng = self.rng
        top = {name: json.dumps(document[name]) for name in ("format", "version")}
        for name in rng.sample(list(top), len(top)):
            self.line((name,), f"{self.key(name)} = {top[name]}")
        records = document["records"]
        if rng.random() < 0.2:
            self.array(("records",), "records", records, self.inline)
        else:
            for number, record in enumerate(records):
                self.record(("records", number), record)
        return self.text.replace("\n", "\r\n") if rng.random() < 0.3 else self.text

    def record(self, path, record):
        self.noise()
        self.line(path, f"[[{self.blank()}{self.key('records')}{self.blank()}]]")
        tables = {"deals"} if self.rng.random() < 0.8 else set()
        if self.rng.random() < 0.3 and (*path, "rules") != self.wrong:
            tables.add("rules")
        self.fields(path, record, tables)
        for name in sorted(tables, key=lambda _: self.rng.random()):
            if name == "rules":
                self.line((*path, name), f"[records . {self.key(name)}]")
                for field, value in record[name].items():
                    self.line((*path, name, field), f"{self.key(field)} = {json.dumps(value)}")
                continue
            for number, deal in enumerate(record[name]):
                self.deal((*path, name, number), deal)

    def deal(self, path, deal):
        self.noise()
        self.line(path, f"[[records.{self.key('deals')}]]")
        tables = {"comments"} if self.rng.random() < 0.5 else set()
        if (*path, "comments") == self.wrong:
            tables = set()
        self.fields(path, deal, tables)
        for name in tables:
            for number, comment in enumerate(deal[name]):
                self.line((*path, name, number), f"[[records.deals.{self.key(name)}]]")
                self.fields((*path, name, number), comment, ())

    def fields(self, path, table, tables):
        """The fields of a table in any order, but for those that have `tables` of their own."""
        names = [name for name in table if name not in tables]
        if self.wrong is not None and path == self.wrong[:-1] and self.wrong[-1] not in table:
            names.append(self.wrong[-1])
        for name in self.rng.sample(names, len(names)):
            here, value = (*path, name), table.get(name)
            if here == self.wrong:
                self.line(here, f"{self.key(name)} ={self.blank()}{self.value}")
            elif name == "rules" and value and self.rng.random() < 0.5:
                for field, one in value.items():
                    self.lines.setdefault(here, self.now)
                    self.line((*here, field), f"{self.key(name)} . {field} = {json.dumps(one)}")
            elif isinstance(value, list):
                self.array(here, name, value, self.inline)
            else:
                self.line(here, f"{self.key(name)} = {self.inline(here, value)}")

    def array(self, path, name, values, inline):
        """An array, over several lines or not."""
        spread = self.rng.random() < 0.7
        self.indent()
        self.lines[path] = self.now
        self.text += f"{self.key(name)} = ["
        for number, value in enumerate(values):
            if spread and self.rng.random() < 0.8:
                self.text += self.rng.choice(["\n", " # ] , '''\n\t", "\n\n#[[records]]\n  "])
            self.lines[(*path, number)] = self.now
            self.text += inline((*path, number), value)
            if number + 1 < len(values) or (spread and self.rng.random() < 0.5):
                self.text += self.blank() + ","
        self.text += ("\n" if spread else "") + "]\n"

    def inline(self, path, value):
        """A value as one piece of text, in which nothing has a line of its own."""
        if path == self.wrong:
            return self.value
        if isinstance(value, dict):
            names = list(value)
            if self.wrong is not None and path == self.wrong[:-1] and self.wrong[-1] not in value:
                names.append(self.wrong[-1])
            names = self.rng.sample(names, len(names))
            pairs = [f"{self.key(n)} = {self.inline((*path, n), value.get(n))}" for n in names]
            return f"{{{self.blank()}{', '.join(pairs)}{self.blank()}}}"
        if isinstance(value, list):
            between = self.rng.choice([", ", ",\n", " , # }}\n"])
            inner = [self.inline((*path, n), one) for n, one in enumerate(value)]
            return f"[{between.join(inner)}]"
        if isinstance(value, str):
            return self.string(value)
        return json.dumps(value) if isinstance(value, bool | int) else value.isoformat()

    def string(self, value):
        forms = [json.dumps(value, ensure_ascii=self.rng.random() < 0.5 and max(value) < "\u3000")]
        if '"' not in value and "\\" not in value and "\n" not in value:
            forms += [f'"""\n{value}"""', f'"""\\\n   {value}"""']
        if "'" not in value and "\n" not in value:
            forms += [f"'{value}'", f"'''\r\n{value}'''" if "\r" in value else f"'''\n{value}'''"]
        return self.rng.choice(forms)

    def key(self, name):
        escaped = "".join(f"\\u{ord(letter):04x}" for letter in name[:1]) + name[1:]
        return self.rng.choice([name, name, f'"{name}"', f"'{name}'", f'"{escaped}"'])

    @property
    def now(self):
        return self.text.count("\n") + 1

    def line(self, path, text):
        self.indent()
        self.lines.setdefault(path, self.now)
        self.text += text + self.blank() + self.rng.choice(["", "", '# """', "# = [[", "#"]) + "\n"
        if self.rng.random() < 0.2:
            self.noise()

    def noise(self):
        self.text += self.rng.choice(["\n", "# [[records.deals]]\n", "\t\n\n", "  # '''\n", ""])

    def indent(self):
        self.text += self.rng.choice(["", "", "  ", "\t", " \t "])

    def blank(self):
        return self.rng.choice(["", " ", "\t", "   "])
