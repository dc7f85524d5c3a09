"""Tests of `posixpath`, written from the documentation of `os.path`."""

# mypy: ignore-errors
import pytest
import solution


@pytest.mark.critical
@pytest.mark.parametrize(
    ("path", "head", "tail"),
    [("/a/b", "/a", "b"), ("a/b/", "a/b", ""), ("/a", "/", "a"), ("a", "", "a")],
)
def test_split_is_dirname_and_basename(path, head, tail):
    assert solution.split(path) == (head, tail)
    assert solution.dirname(path) == head


@pytest.mark.parametrize(
    ("path", "name"), [("/a/b.txt", "b.txt"), ("a/b/", ""), ("/", ""), ("a", "a")]
)
def test_basename_is_what_follows_the_last_slash(path, name):
    assert solution.basename(path) == name


@pytest.mark.critical
@pytest.mark.parametrize(
    ("parts", "path"),
    [
        (("a", "b"), "a/b"),
        (("a/", "b"), "a/b"),
        (("a", "/b"), "/b"),
        (("", "b"), "b"),
        (("a", ""), "a/"),
    ],
)
def test_join(parts, path):
    assert solution.join(*parts) == path


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("", "."),
        ("a//b/./c", "a/b/c"),
        ("a/b/../c", "a/c"),
        ("../a", "../a"),
        ("a/../..", ".."),
        ("/../a", "/a"),
        ("//a", "//a"),
        ("///a", "/a"),
    ],
)
def test_normpath(path, normal):
    assert solution.normpath(path) == normal


@pytest.mark.parametrize(
    ("path", "start", "relative"),
    [
        ("/a/b/c", "/a", "b/c"),
        ("/a/b", "/a/c/d", "../../b"),
        ("/a", "/a", "."),
        ("/a/b", "/", "a/b"),
    ],
)
def test_relpath(path, start, relative):
    assert solution.relpath(path, start) == relative


@pytest.mark.parametrize(
    ("paths", "common"),
    [(["/a/b", "/a/c"], "/a"), (["/a/b", "/a/b/c"], "/a/b"), (["a/b"], "a/b"), (["/x", "/y"], "/")],
)
def test_commonpath(paths, common):
    assert solution.commonpath(paths) == common


@pytest.mark.minor
def test_commonpath_does_not_mix_absolute_and_relative():
    with pytest.raises(ValueError, match="mix"):
        solution.commonpath(["/a", "b"])


@pytest.mark.parametrize(
    ("path", "root", "extension"),
    [("a.tar.gz", "a.tar", ".gz"), (".rc", ".rc", ""), ("a.b/c", "a.b/c", "")],
)
def test_splitext(path, root, extension):
    assert solution.splitext(path) == (root, extension)


@pytest.mark.minor
def test_isabs():
    assert solution.isabs("/a")
    assert not solution.isabs("a")
