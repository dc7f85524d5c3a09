//! A file as rows of JSON: one a line, or the items of an array, or values one after the other.
//!
//! Memory is bounded by the longest row, whatever the size of the file; gzip is unpacked on the way.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use super::Problem;

/// The longest row.
pub(super) const MAX_ROW_BYTES: u64 = 256 << 20;

const CHUNK: usize = 64 << 10;

type Input = Box<dyn BufRead + Send>;

/// What is left of a file.
pub(super) struct Rows {
    input: Input,
    /// The line that comes next, from 1.
    line: usize,
    layout: Layout,
}

#[derive(Clone, Copy, PartialEq)]
enum Layout {
    Unknown,
    Lines,
    /// Values one after the other, in an array or not.
    Values {
        in_array: bool,
    },
    Ended,
}

/// A row's bytes and the line it begins on; or what is wrong there.
pub(super) type Row = (usize, Result<Vec<u8>, Problem>);

impl Rows {
    /// The rows of a file.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = BufReader::with_capacity(CHUNK, File::open(path)?);
        Self::of(Box::new(file))
    }

    /// The rows of bytes.
    pub(super) fn of(mut input: Input) -> io::Result<Self> {
        if starts_with(&mut input, b"\x1f\x8b")? {
            input = Box::new(BufReader::with_capacity(CHUNK, MultiGzDecoder::new(input)));
        }
        if starts_with(&mut input, b"\xef\xbb\xbf")? {
            input.consume(3);
        }
        Ok(Self { input, line: 1, layout: Layout::Unknown })
    }

    /// The next row. After what is broken inside a row the next one can be asked for.
    pub(super) fn next(&mut self) -> Option<Row> {
        if self.layout == Layout::Unknown {
            match self.find_layout() {
                Ok(layout) => self.layout = layout,
                Err(problem) => return Some(self.end(self.line, problem)),
            }
        }
        match self.layout {
            Layout::Lines => self.next_line(),
            Layout::Values { in_array } => self.next_value(in_array),
            Layout::Unknown | Layout::Ended => None,
        }
    }

    fn end(&mut self, line: usize, problem: Problem) -> Row {
        self.layout = Layout::Ended;
        (line, Err(problem))
    }

    fn find_layout(&mut self) -> Result<Layout, Problem> {
        match self.skip_blank()? {
            None => Ok(Layout::Ended),
            Some(b'[') => {
                // A line of its own may be an array, too; that is no row, and its items are.
                self.input.consume(1);
                Ok(Layout::Values { in_array: true })
            }
            Some(b'{') => {
                let first = self.take_line()?;
                let mut scan = Scan::default();
                let is_whole = first.iter().any(|byte| scan.ends_at(*byte));
                let rest = std::mem::replace(&mut self.input, Box::new(io::empty()));
                self.input = Box::new(Cursor::new(first).chain(rest));
                Ok(if is_whole { Layout::Lines } else { Layout::Values { in_array: false } })
            }
            Some(_) => Ok(Layout::Lines), // each line will say what is wrong with it
        }
    }

    /// The bytes to the end of the line, without counting it.
    fn take_line(&mut self) -> Result<Vec<u8>, Problem> {
        let mut bytes = Vec::new();
        (&mut self.input).take(MAX_ROW_BYTES + 1).read_until(b'\n', &mut bytes)?;
        if bytes.len() as u64 > MAX_ROW_BYTES {
            return Err(Problem::TooLong);
        }
        Ok(bytes)
    }

    fn next_line(&mut self) -> Option<Row> {
        loop {
            let line = self.line;
            let bytes = match self.take_line() {
                Ok(bytes) => bytes,
                Err(problem) => return Some(self.end(line, problem)),
            };
            if bytes.is_empty() {
                self.layout = Layout::Ended;
                return None;
            }
            self.line += 1;
            if !bytes.iter().all(u8::is_ascii_whitespace) {
                return Some((line, Ok(bytes)));
            }
        }
    }

    fn next_value(&mut self, in_array: bool) -> Option<Row> {
        let line = self.line;
        match self.value(in_array) {
            Ok(Some(bytes)) => Some(bytes),
            Ok(None) => {
                self.layout = Layout::Ended;
                None
            }
            Err((begun, problem)) => Some(self.end(begun.unwrap_or(line), problem)),
        }
    }

    fn value(&mut self, in_array: bool) -> Result<Option<Row>, (Option<usize>, Problem)> {
        let mut next = self.skip_blank().map_err(|problem| (None, problem))?;
        if in_array && next == Some(b',') {
            self.input.consume(1);
            next = self.skip_blank().map_err(|problem| (None, problem))?;
        }
        let begun = self.line;
        let fail = |problem| (Some(begun), problem);
        match next {
            None if in_array => return Err(fail(Problem::Expected("the end of the array"))),
            None => return Ok(None),
            Some(b']') if in_array => return Ok(None),
            Some(b'{' | b'[') => {}
            Some(_) => return Err(fail(Problem::Expected("an object"))),
        }
        let (mut bytes, mut scan) = (Vec::new(), Scan::default());
        loop {
            let chunk = self.input.fill_buf().map_err(|error| fail(error.into()))?;
            if chunk.is_empty() {
                return Err(fail(Problem::CutOff));
            }
            let end = chunk.iter().position(|byte| scan.ends_at(*byte));
            let used = end.map_or(chunk.len(), |end| end + 1);
            let part = chunk.get(..used).unwrap_or_default();
            self.line += part.iter().filter(|byte| **byte == b'\n').count();
            bytes.extend_from_slice(part);
            self.input.consume(used);
            if end.is_some() {
                return Ok(Some((begun, Ok(bytes))));
            }
            if bytes.len() as u64 > MAX_ROW_BYTES {
                return Err(fail(Problem::TooLong));
            }
        }
    }

    /// The next byte that is not blank, counting lines.
    fn skip_blank(&mut self) -> Result<Option<u8>, Problem> {
        loop {
            let chunk = self.input.fill_buf()?;
            let Some(byte) = chunk.first().copied() else { return Ok(None) };
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
            self.line += usize::from(byte == b'\n');
            self.input.consume(1);
        }
    }
}

/// Whether a file begins with these bytes; none of them is taken.
fn starts_with(input: &mut Input, start: &[u8]) -> io::Result<bool> {
    if input.fill_buf()?.len() >= start.len() {
        return Ok(input.fill_buf()?.starts_with(start));
    }
    // A pipe may have given less than there is.
    let mut first = Vec::new();
    input.take(start.len() as u64).read_to_end(&mut first)?;
    let is_start = first == start;
    let rest = std::mem::replace(input, Box::new(io::empty()));
    *input = Box::new(Cursor::new(first).chain(rest));
    Ok(is_start)
}

/// Finds the end of an object or array, byte by byte.
#[derive(Default)]
struct Scan {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
}

impl Scan {
    /// Whether the value ends with this byte.
    fn ends_at(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: &[u8]) -> Vec<(usize, Result<String, String>)> {
        let mut rows = Rows::of(Box::new(Cursor::new(bytes.to_vec()))).unwrap();
        std::iter::from_fn(move || rows.next())
            .map(|(line, row)| {
                let row = row.map(|bytes| String::from_utf8(bytes).unwrap().trim().to_owned());
                (line, row.map_err(|problem| problem.to_string()))
            })
            .collect()
    }

    fn whole(bytes: &[u8]) -> Vec<(usize, String)> {
        rows(bytes).into_iter().map(|(line, row)| (line, row.unwrap())).collect()
    }

    fn said(expected: &[(usize, &str)]) -> Vec<(usize, String)> {
        expected.iter().map(|(line, row)| (*line, (*row).to_owned())).collect()
    }

    #[test]
    fn lines_are_rows_whatever_ends_them() {
        let bytes = b"\xef\xbb\xbf\r\n{\"a\": 1}\r\n\n  \n{\"b\": \"}\"}";
        assert_eq!(whole(bytes), said(&[(2, r#"{"a": 1}"#), (5, r#"{"b": "}"}"#)]));
    }

    #[test]
    fn items_of_an_array_are_rows_with_the_lines_they_begin_on() {
        let bytes = b"[\n  {\"a\": [1, {}],\n \"b\": \"]\\\"}\"},\n\n{} ,[1]]\n";
        let expected = [(2, "{\"a\": [1, {}],\n \"b\": \"]\\\"}\"}"), (5, "{}"), (5, "[1]")];
        assert_eq!(whole(bytes), said(&expected));
    }

    #[test]
    fn objects_over_several_lines_are_rows() {
        assert_eq!(whole(b"{\n\"a\": 1\n}\n{\n}"), said(&[(1, "{\n\"a\": 1\n}"), (4, "{\n}")]));
    }

    #[test]
    fn gzip_is_unpacked_also_in_several_parts() {
        use std::io::Write;
        let pack = |text: &[u8]| {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(text).unwrap();
            packer.finish().unwrap()
        };
        let bytes = [pack(b"{\"a\": 1}\n{\"b\""), pack(b": 2}\n")].concat();
        assert_eq!(whole(&bytes), said(&[(1, r#"{"a": 1}"#), (2, r#"{"b": 2}"#)]));
        let cut = rows(&bytes[..bytes.len() - 12]);
        assert!(cut.last().unwrap().1.is_err());
    }

    #[test]
    fn what_is_cut_off_is_said_where_it_begins() {
        assert_eq!(
            rows(b"[{}\n,\n{\"a\":"),
            [
                (1, Ok("{}".to_owned())),
                (3, Err("cut off before the end of the value that begins here".to_owned()))
            ]
        );
        assert_eq!(rows(b"[{},\n")[1].1.as_ref().unwrap_err(), "expected the end of the array");
        assert_eq!(rows(b"[{},\n1]")[1].1.as_ref().unwrap_err(), "expected an object");
        assert_eq!(rows(b" \n").len() + rows(b"").len(), 0);
    }
}
