#!/usr/bin/env python3
"""Holds the documentation to the tree: what a Markdown file names, exists.

    check_docs.py [--root DIR]

Prints FILE:LINE: what is missing, and exits 1 if anything is. Looked at:
  * paths in backticks that start with a folder of the project or of src/, or end like a source
    file, and the names of files at the top (`README.md`); globs must match, {a,b} is expanded;
  * `make verb` in backticks or in a code block;
  * relative links, and the headings they point to.
Paths below build/ are made by the build, paths with capital placeholders (NNNN, NAME) or <…> are
patterns, and absolute paths are the host's: these are not looked at.
"""
import argparse
import pathlib
import re
import subprocess
import sys

SOURCE_SUFFIXES = (".cc", ".h", ".py", ".sh", ".md", ".json", ".yaml", ".yml", ".cmake", ".ts")
CODE_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
MAKE = re.compile(r"(?:^|[\s;&(])make +((?:[A-Z_]+=\S+ +)*)([a-z][a-z0-9-]*)")
PLACEHOLDER = re.compile(r"[<>$…|\s\"'=,;()]|(?<![A-Za-z])[A-Z]{3,}(?![A-Za-z.])")
FENCE = re.compile(r"^\s*(```|~~~)")


class Docs:
    def __init__(self, root):
        self.root = root
        self.files = self.list_files()
        self.folders = {parent.as_posix() for file in self.files
                        for parent in pathlib.PurePosixPath(file).parents if parent.name}
        self.top = {file.split("/")[0] for file in self.files}
        self.layers = {f.split("/")[1] for f in self.files if f.startswith("src/") and f.count("/") > 1}
        makefile = root / "Makefile"
        text = makefile.read_text() if makefile.is_file() else ""
        self.verbs = set(re.findall(r"^([a-z][a-z0-9-]*):", text, re.MULTILINE))

    def list_files(self):
        """Files of the project: tracked or new, not ignored; without git, all."""
        git = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                             cwd=self.root, capture_output=True, text=True)
        if git.returncode == 0 and (self.root / ".git").exists():
            names = [name for name in git.stdout.split("\0") if name]
        else:
            names = [p.relative_to(self.root).as_posix() for p in self.root.rglob("*")]
            names = [name for name in names if name.split("/")[0] not in ("build", ".git")]
        return {name for name in names if (self.root / name).is_file()}

    def exists(self, path, base):
        """Whether `path` names something, seen from the root, from src/, or from the document."""
        path = path.rstrip("/")
        for prefix in ("", "src/", base):
            whole = pathlib.PurePosixPath(prefix + path).as_posix()
            if whole in self.files or whole in self.folders:
                return True
            if "*" in whole and self.glob(whole):
                return True
        return False

    def glob(self, pattern):
        regex = re.escape(pattern).replace(r"\*\*/", "(?:.*/)?").replace(r"\*\*", ".*")
        regex = re.compile(regex.replace(r"\*", "[^/]*"))
        return any(regex.fullmatch(name) for name in self.files | self.folders)

    def path_in(self, span):
        """The path that a code span stands for, or None when it stands for something else."""
        text = re.sub(r":\d+(-\d+)?$", "", span.strip())
        if text.startswith("./"):
            text = text[2:]
        if text.startswith(("/", "~", "-", "build/", "http:", "https:", "../")) or "::" in text:
            return None
        # Braces hold commas; look for placeholders outside of them.
        if PLACEHOLDER.search(re.sub(r"\{[^}]*\}", "", text)):
            return None
        if "/" not in text:
            return text if text in TOP_NAMES or text.endswith(".md") and text.isupper() else None
        first = text.split("/")[0]
        known = first in self.top | self.layers | TOP_FOLDERS
        source = text.rstrip("/").endswith(SOURCE_SUFFIXES) and "*" not in first
        return text if known or source else None

    def check(self, name):
        """Yields (line, message) for what the document `name` gets wrong."""
        base = name.rpartition("/")[0]
        base = base + "/" if base else ""
        in_code = False
        for number, line in enumerate((self.root / name).read_text().splitlines(), 1):
            if FENCE.match(line):
                in_code = not in_code
                continue
            spans = [] if in_code else CODE_SPAN.findall(line)
            for span in spans:
                path = self.path_in(span)
                for each in expand_braces(path) if path else []:
                    if not self.exists(each, base):
                        yield number, f"`{each}` does not exist"
            for text in [line] if in_code else spans:
                for _, verb in MAKE.findall(text.split("#")[0]):
                    if verb not in self.verbs:
                        yield number, f"`make {verb}` is not a verb of the Makefile"
            if not in_code:
                for target in LINK.findall(re.sub(CODE_SPAN, "", line)):
                    problem = self.check_link(target, name, base)
                    if problem:
                        yield number, problem

    def check_link(self, target, name, base):
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            return None
        path, _, anchor = target.partition("#")
        whole = name
        if path:
            whole = normalise(base + path)
            if whole not in self.files and whole not in self.folders:
                return f"link to {target}: {whole or path} does not exist"
        if anchor and whole.endswith(".md") and anchor not in anchors(self.root / whole):
            return f"link to {target}: no such heading in {whole}"
        return None


TOP_FOLDERS = {"src", "tests", "scripts", "docs", "bench", "fuzz", "examples", "sdk", "registry",
               "web", "deploy"}
TOP_NAMES = {"Makefile", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "VERSION", ".clang-tidy",
             ".clang-format", ".gitignore", "README.md", "ARCHITECTURE.md", "SPECIFICATION.md",
             "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"}


def expand_braces(path):
    match = re.search(r"\{([^{}]*)\}", path)
    if not match:
        return [path]
    return [each for part in match[1].split(",")
            for each in expand_braces(path[:match.start()] + part.strip() + path[match.end():])]


def normalise(path):
    parts = []
    for part in path.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def anchors(path):
    """The anchors of a document's headings, as GitHub makes them."""
    found, in_code = set(), False
    for line in path.read_text().splitlines():
        if FENCE.match(line):
            in_code = not in_code
        match = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if in_code or not match:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[1]).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        count = 0
        while (unique := f"{slug}-{count}" if count else slug) in found:
            count += 1
        found.add(unique)
    return found


def main():
    parser = argparse.ArgumentParser(description="Check that what the documentation names, exists.")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    docs = Docs(parser.parse_args().root)
    problems = 0
    for name in sorted(file for file in docs.files if file.endswith(".md")):
        for number, message in docs.check(name):
            print(f"{name}:{number}: {message}")
            problems += 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
