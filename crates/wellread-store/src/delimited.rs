//! Text in lines of fields: CSV (RFC 4180), and its kin with tabs or semicolons.
//!
//! ```text
//!  file ── read, at most so many bytes ─▶ bytes ── Delimited::of: every quote is closed ─▶ header, records one after the other
//!                                                                                          └─▶ Table: all of them as text
//! ```
//!
//! Fields may stand in double quotes, with delimiters, line ends and doubled quotes in them. The `csv` crate reads a
//! quote that is not closed as one field up to the end of the file. So all later lines would be lost without an error.
//! This module therefore looks first.

use crate::words::counted;
use crate::{Error, Result, place};
use csv::StringRecord;
use std::path::Path;

/// Columns at most: far beyond any table of cells or of files.
const MAX_COLUMNS: usize = 1 << 16;

/// The bytes of a table, if there are not more than `most`.
///
/// # Errors
/// A file that cannot be read or is too large.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>> {
    let (file, length) = place::open(path).map_err(|e| Error::io(path, "cannot open", &e))?;
    if length > most {
        let cause = format_args!("a table of {length} bytes of text; at most {most} are read");
        return Err(Error::new(path, cause));
    }
    let mut bytes = vec![];
    file.peek_after(0, length, &mut bytes).map_err(|e| Error::io(path, "cannot read", &e))?;
    Ok(bytes)
}

/// A text whose quotes are all closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delimited<'t> {
    path: &'t Path,
    text: &'t [u8],
    delimiter: u8,
    /// Lines of the file in front of `text`.
    before: usize,
}

/// Delimiters and their names. The last one wins where the first line has equally many of several.
const DELIMITERS: [(u8, &str); 3] = [(b';', "semicolons"), (b'\t', "tabs"), (b',', "commas")];

/// The beginning of a first line that names the delimiter, as Excel takes it.
const NAMED: &[u8] = b"sep=";

/// The remedy for text in another encoding.
const AS_UTF8: &str = "save it as UTF-8: in Excel as \"CSV UTF-8\"";

impl<'t> Delimited<'t> {
    /// A text with names in its first line.
    ///
    /// # Errors
    /// Text that is no UTF-8. A quote that is not closed, or behind which a field goes on. More columns than are read.
    /// Names the line.
    pub fn of(path: &'t Path, text: &'t [u8]) -> Result<Self> {
        let made = Self::beginning(path, text);
        if text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff") {
            return Err(Error::new(path, "is text in UTF-16, and UTF-8 is read").hint(AS_UTF8));
        }
        if let Err(wrong) = std::str::from_utf8(made.text) {
            let line = made.before + made.text[..wrong.valid_up_to()].split(|&byte| byte == b'\n').count();
            return Err(
                Error::new(path, format_args!("line {line}: is no UTF-8 text: {wrong}")).hint(AS_UTF8)
            );
        }
        made.check().map_err(|why| Error::new(path, why))?;
        Ok(made)
    }

    /// A text that may end anywhere.
    fn beginning(path: &'t Path, text: &'t [u8]) -> Self {
        // Excel writes this mark first.
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        // Empty lines in front are none.
        let blank = text.iter().take_while(|&&byte| matches!(byte, b'\n' | b'\r')).count();
        let before = text[..blank].split(|&byte| byte == b'\n').count() - 1;
        let text = &text[blank..];
        let (first, rest) = line_of(text);
        if let Some((delimiter, b"")) = first.strip_prefix(NAMED).and_then(<[u8]>::split_first)
            && DELIMITERS.iter().any(|(known, _)| known == delimiter)
        {
            return Self { path, text: rest, delimiter: *delimiter, before: before + 1 };
        }
        let (second, _) = line_of(rest);
        // A delimiter that the next line has as often wins among equals: names of columns may have commas in them.
        let told = |delimiter: u8| {
            let count = outside_quotes(first, delimiter);
            (count, count > 0 && count == outside_quotes(second, delimiter))
        };
        let delimiter = DELIMITERS.map(|(delimiter, _)| delimiter).into_iter().max_by_key(|&by| told(by));
        Self { path, text, delimiter: delimiter.unwrap_or(b','), before }
    }

    /// The name of its delimiter.
    pub fn delimiter_in_words(&self) -> &'static str {
        DELIMITERS
            .iter()
            .find(|(delimiter, _)| *delimiter == self.delimiter)
            .map_or("commas", |(_, words)| words)
    }

    /// Whether its fields are separated by semicolons, as where a comma is the decimal mark.
    pub fn has_semicolons(&self) -> bool {
        self.delimiter == b';'
    }

    fn reader(&self) -> csv::Reader<&'t [u8]> {
        csv::ReaderBuilder::new().delimiter(self.delimiter).from_reader(self.text)
    }

    /// The first line.
    ///
    /// # Errors
    /// Text that is no UTF-8.
    pub fn header(&self) -> Result<StringRecord> {
        self.reader().headers().cloned().map_err(|e| self.refusal(&e))
    }

    /// Hands over the lines behind the first one, one after the other, without empty ones.
    ///
    /// # Errors
    /// A line with fewer or more fields than the first one, text that is no UTF-8. Names the line.
    pub fn each(&self, mut each: impl FnMut(&StringRecord)) -> Result<()> {
        let mut records = self.reader();
        let mut record = StringRecord::new();
        while records.read_record(&mut record).map_err(|e| self.refusal(&e))? {
            each(&record);
        }
        Ok(())
    }

    /// The error of a line.
    fn refusal(&self, error: &csv::Error) -> Error {
        let line =
            error.position().map_or(String::new(), |at| format!("line {}: ", at.line() + self.before as u64));
        let mut has_more = false;
        let cause = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                has_more = len > expected_len;
                let fields = counted(usize::try_from(*len).unwrap_or(usize::MAX), "field");
                let by = self.delimiter_in_words();
                format!("{fields}, where the first line has {expected_len} (separated by {by})")
            }
            csv::ErrorKind::Utf8 { err, .. } => format!("is no UTF-8 text: {err}"),
            _ => error.to_string(),
        };
        let error = Error::new(self.path, format_args!("{line}{cause}"));
        if has_more && self.delimiter == b',' {
            return error.hint(
                "numbers with decimal commas need semicolons between fields; text with commas needs quotes around it",
            );
        }
        error
    }

    /// Looks at each byte as the `csv` crate does: a quote opens at the beginning of a field alone.
    fn check(&self) -> Result<(), String> {
        let (mut at, mut line, mut opened) = (FieldState::Begin, 1 + self.before, 1);
        let (mut columns, mut in_header, mut is_blank) = (1usize, true, true);
        for &byte in self.text {
            let ends_line = matches!(byte, b'\n' | b'\r');
            let ends_field = ends_line || byte == self.delimiter;
            at = match at {
                FieldState::Quoted if byte == b'"' => FieldState::Closed,
                FieldState::Quoted => FieldState::Quoted,
                FieldState::Closed if byte == b'"' => FieldState::Quoted,
                FieldState::Closed if !ends_field => {
                    return Err(format!("line {line} goes on behind a quote"));
                }
                FieldState::Begin if byte == b'"' => {
                    opened = line;
                    FieldState::Quoted
                }
                _ if ends_field => FieldState::Begin,
                _ => FieldState::Plain,
            };
            if in_header && at != FieldState::Quoted {
                // Empty lines in front are none.
                in_header = !ends_line || is_blank;
                columns += usize::from(byte == self.delimiter);
                if columns > MAX_COLUMNS {
                    return Err(format!("more than {MAX_COLUMNS} columns"));
                }
            }
            is_blank = is_blank && ends_line;
            line += usize::from(byte == b'\n');
        }
        if at == FieldState::Quoted { Err(format!("a quote of line {opened} is not closed")) } else { Ok(()) }
    }
}

/// The first line of a text without its end, and what follows. Excel for Mac may end lines with a carriage return alone.
fn line_of(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(text.len());
    let (line, rest) = text.split_at(end);
    let ending = if rest.starts_with(b"\r\n") { 2 } else { 1 };
    (line, rest.get(ending..).unwrap_or_default())
}

/// How often a byte is in a line, outside of quotes where each is closed.
fn outside_quotes(line: &[u8], wanted: u8) -> usize {
    let (mut outside, mut all, mut is_quoted) = (0, 0, false);
    for &byte in line {
        is_quoted ^= byte == b'"';
        all += usize::from(byte == wanted);
        outside += usize::from(byte == wanted && !is_quoted);
    }
    if is_quoted { all } else { outside }
}

/// Where in a field a byte stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldState {
    /// At its beginning.
    Begin,
    /// In it, without quotes.
    Plain,
    /// Between its quotes.
    Quoted,
    /// Behind a quote that closes it, unless another one follows.
    Closed,
}

/// The names in the first line of a text that may end anywhere; none where it cannot be read.
pub(crate) fn names_at_beginning(text: &[u8]) -> Vec<String> {
    let header = Delimited::beginning(Path::new(""), text).header().unwrap_or_default();
    header.iter().map(|name| name.trim().to_owned()).collect()
}

/// A table as text, in one piece of memory: a field takes 4 bytes beside its own, however many there are.
#[derive(Debug)]
pub(crate) struct Table {
    /// The names of the columns.
    pub header: Vec<String>,
    /// As [`Delimited::has_semicolons`].
    pub has_semicolons: bool,
    rows: usize,
    /// All values, without spaces around them, row by row, and where each ends.
    text: String,
    ends: Vec<u32>,
}

impl Table {
    /// All of a text of less than 4 GiB.
    ///
    /// # Errors
    /// As [`Delimited::of`], [`Delimited::each`]; no header.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self> {
        let lines = Delimited::of(path, text)?;
        let header: Vec<String> = lines.header()?.iter().map(|name| name.trim().to_owned()).collect();
        if header.is_empty() {
            return Err(Error::new(path, "the table is empty"));
        }
        let has_semicolons = lines.has_semicolons();
        let mut table = Self { header, has_semicolons, rows: 0, text: String::new(), ends: vec![] };
        lines.each(|record| {
            table.rows += 1;
            for value in record {
                table.text.push_str(value.trim());
                table.ends.push(table.text.len() as u32);
            }
        })?;
        Ok(table)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// A value; nothing where there is none.
    pub fn value(&self, row: usize, column: usize) -> &str {
        let at = row * self.header.len() + column;
        let start = if at == 0 { Some(&0) } else { self.ends.get(at - 1) };
        match (start, self.ends.get(at)) {
            (Some(&start), Some(&end)) => &self.text[start as usize..end as usize],
            _ => "",
        }
    }

    /// The place of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|column| column == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Table> {
        Table::parse(Path::new("t.csv"), text.as_bytes())
    }

    fn rows(text: &str) -> Vec<Vec<String>> {
        let table = parsed(text).unwrap();
        let values = |row: usize| -> Vec<String> {
            (0..table.header.len()).map(|column| table.value(row, column).to_owned()).collect()
        };
        std::iter::once(table.header.clone()).chain((0..table.len()).map(values)).collect()
    }

    #[test]
    fn values_stand_with_and_without_quotes() {
        assert_eq!(rows("\u{feff}a,b\r\n1, 2 \r\n"), [["a", "b"], ["1", "2"]]);
        assert_eq!(
            rows("a,b\n\"x,\"\"y\"\"\",\"l1\nl2\"\n\n,"),
            [["a", "b"], ["x,\"y\"", "l1\nl2"], ["", ""]]
        );
        // A quote in the middle of a field is a letter.
        assert_eq!(rows("a\tb\n5\" x\t\"\"\n"), [["a", "b"], ["5\" x", ""]]);
        assert_eq!(parsed("a,b\n").unwrap().column("b"), Some(1));
        assert_eq!(names_at_beginning(b"a,\"b\"\n1,\"unfin"), ["a", "b"]);
    }

    #[test]
    fn the_delimiter_is_told_by_the_first_line() {
        let header = |text: &str| parsed(text).unwrap().header;
        assert_eq!(header("a;b\n1,5;2,5\n"), ["a", "b"]);
        assert_eq!(header("a\tb\n1,5\t2,5\n"), ["a", "b"]);
        assert_eq!(header("\"a;b;c\",d\n1,2\n"), ["a;b;c", "d"]);
        // As many of both: the one that the next line has as often.
        assert_eq!(header("dose (uM, final);time\n0,5;1,5\n"), ["dose (uM, final)", "time"]);
        assert_eq!(header("a;b,c\n1;2,3\n"), ["a;b", "c"]);
        for named in ["sep=;\na;b,c,d\n1;2\n", "sep=;\r\na;b,c,d\r\n1;2\r\n"] {
            assert_eq!(rows(named), [["a", "b,c,d"], ["1", "2"]]);
        }
        assert_eq!(header("sep=,b\n1,2\n"), ["sep=", "b"]);
        // Empty lines in front, and ends of lines as Excel for Mac has them.
        assert_eq!(header("\u{feff}\n\r\na;b\n1,5;2,5\n"), ["a", "b"]);
        assert_eq!(rows("a;b\r0,5;1,5\r2,5;3\r"), [["a", "b"], ["0,5", "1,5"], ["2,5", "3"]]);
        assert_eq!(rows("sep=;\ra;b,c\r1;2\r"), [["a", "b,c"], ["1", "2"]]);
    }

    #[test]
    fn what_is_wrong_is_said_by_line() {
        let error = |text: &str| parsed(text).unwrap_err().cause().to_owned();
        assert_eq!(error(""), "the table is empty");
        assert_eq!(
            error("a,b\n\"1\n\",2\n3"),
            "line 4: 1 field, where the first line has 2 (separated by commas)"
        );
        assert_eq!(
            error("sep=;\na;b\n1\n"),
            "line 3: 1 field, where the first line has 2 (separated by semicolons)"
        );
        assert_eq!(error("sep=;\na;b\n1;\"2"), "a quote of line 3 is not closed");
        assert_eq!(
            error("\n\na;b\n1\n"),
            "line 4: 1 field, where the first line has 2 (separated by semicolons)"
        );
        let commas = parsed("x,y\n0,5,1,5\n").unwrap_err();
        assert!(commas.hint_text().unwrap().contains("decimal commas need semicolons"), "{commas}");
        assert_eq!(error("a\n\"1"), "a quote of line 2 is not closed");
        assert_eq!(error("a\n\"1\"\"\n2\n"), "a quote of line 2 is not closed");
        let utf16 = Delimited::of(Path::new("t.csv"), b"\xff\xfea\0,\0b\0").unwrap_err().to_string();
        assert!(utf16.contains("UTF-16") && utf16.contains("CSV UTF-8"), "{utf16}");
        assert_eq!(error("a\n\"1\"x"), "line 2 goes on behind a quote");
        assert_eq!(error(&",".repeat(MAX_COLUMNS)), "more than 65536 columns");
        let header = ",".repeat(MAX_COLUMNS - 1);
        assert_eq!(parsed(&format!("\n\n{header}\n{header}\n")).unwrap().len(), 1);
    }

    #[test]
    fn a_file_is_read_up_to_a_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.csv");
        std::fs::write(&path, "a\n1\n").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"a\n1\n");
        assert!(read(&path, 3).unwrap_err().cause().contains("4 bytes of text; at most 3"));
    }
}
