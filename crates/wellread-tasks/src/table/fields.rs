//! Comma-separated text as records of fields, each with its place.
//!
//! Fields may be quoted (`"a,b"`, `""` for a quote). A quote within an unquoted field stands for itself. Lines end in LF,
//! CRLF or CR; empty lines and those that begin with `#` are skipped. A field does not span lines: of a quote that is
//! never closed the line is known.

use std::fmt;

/// A field and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// Without quotes and without white space around it.
    pub text: String,
    /// Character of the line, from 1.
    pub column: usize,
}

/// The fields of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Line of the text, from 1.
    pub line: usize,
    pub fields: Vec<Field>,
}

/// The error, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub line: usize,
    pub column: usize,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.what)
    }
}

/// The records of a text.
pub(super) fn records(text: &str) -> Result<Vec<Record>, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut records = Vec::new();
    for (at, line) in lines(text).enumerate() {
        let begin = line.trim_start();
        if begin.is_empty() || begin.starts_with('#') {
            continue;
        }
        let number = at + 1;
        let fields =
            fields(line).map_err(|(column, what)| Problem { line: number, column, what: what.to_owned() })?;
        records.push(Record { line: number, fields });
    }
    Ok(records)
}

/// Lines that end in LF, CRLF or CR.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n').flat_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        line.split('\r')
    })
}

/// The fields of a line; else the column and what is wrong there.
fn fields(line: &str) -> Result<Vec<Field>, (usize, &'static str)> {
    let chars: Vec<char> = line.chars().collect();
    if let Some(at) = chars.iter().position(|c| c.is_control() && *c != '\t') {
        return Err((at + 1, "a control character, which no field may have"));
    }
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        while chars.get(at).is_some_and(|c| c.is_whitespace()) {
            at += 1;
        }
        let begin = at;
        let mut text = String::new();
        if chars.get(at) == Some(&'"') {
            at += 1;
            loop {
                match (chars.get(at), chars.get(at + 1)) {
                    (Some('"'), Some('"')) => {
                        text.push('"');
                        at += 2;
                    }
                    (Some('"'), _) => break,
                    (Some(other), _) => {
                        text.push(*other);
                        at += 1;
                    }
                    (None, _) => return Err((begin + 1, "this quote is not closed on its line")),
                }
            }
            at += 1;
            while chars.get(at).is_some_and(|c| c.is_whitespace()) {
                at += 1;
            }
            if chars.get(at).is_some_and(|c| *c != ',') {
                return Err((
                    at + 1,
                    "expected a comma after the closing quote (a quote within quotes is written \"\")",
                ));
            }
        } else {
            let end = chars[at..].iter().position(|c| *c == ',').map_or(chars.len(), |comma| at + comma);
            text.extend(&chars[at..end]);
            at = end;
        }
        fields.push(Field { text: text.trim().to_owned(), column: begin + 1 });
        if at >= chars.len() {
            return Ok(fields);
        }
        at += 1;
    }
}
