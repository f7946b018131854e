//! Tables of comma-separated values (RFC 4180), as text.
//!
//! Values may stand in double quotes, with commas, line ends and doubled quotes in them. Lines end in `\n` or `\r\n`.

/// A table: its header and its rows, each as long as the header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Parses a table.
    ///
    /// # Errors
    /// No header; a row of another length, by its line; a quote that is not closed.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim_start_matches('\u{feff}');
        let mut lines = Lines { rest: text, line: 1 };
        let header = lines.next_row()?.ok_or("the table is empty")?;
        let mut rows = vec![];
        loop {
            let line = lines.line;
            let Some(row) = lines.next_row()? else { break };
            if row == [""] {
                continue;
            }
            if row.len() != header.len() {
                let (n, m) = (row.len(), header.len());
                return Err(format!("line {line} has {n} values, where the header has {m}"));
            }
            rows.push(row);
        }
        Ok(Self { header, rows })
    }

    /// The place of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|column| column == name)
    }
}

/// The header of a text that may end anywhere.
pub(super) fn header(text: &str) -> Option<Vec<String>> {
    Lines { rest: text.trim_start_matches('\u{feff}'), line: 1 }.next_row().ok()?
}

/// What is left of a text.
struct Lines<'t> {
    rest: &'t str,
    line: usize,
}

impl Lines<'_> {
    /// The values of the next row.
    fn next_row(&mut self) -> Result<Option<Vec<String>>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let mut row = vec![];
        loop {
            let (value, quoted) = self.value()?;
            row.push(if quoted { value } else { value.trim().to_owned() });
            let end = self.rest.chars().next();
            self.rest = self.rest.get(1..).unwrap_or("");
            match end {
                Some(',') => {}
                Some('\r') => {
                    self.rest = self.rest.strip_prefix('\n').unwrap_or(self.rest);
                    self.line += 1;
                    return Ok(Some(row));
                }
                _ => {
                    self.line += 1;
                    return Ok(Some(row));
                }
            }
        }
    }

    /// The next value, and whether it stood in quotes; what is left begins with what ended it.
    fn value(&mut self) -> Result<(String, bool), String> {
        if let Some(mut rest) = self.rest.strip_prefix('"') {
            let line = self.line;
            let mut value = String::new();
            loop {
                let at = rest.find('"').ok_or_else(|| format!("a quote of line {line} is not closed"))?;
                value.push_str(&rest[..at]);
                self.line += rest[..at].matches('\n').count();
                rest = &rest[at + 1..];
                match rest.strip_prefix('"') {
                    Some(more) => {
                        value.push('"');
                        rest = more;
                    }
                    None => break,
                }
            }
            self.rest = rest;
            if !(rest.is_empty() || rest.starts_with([',', '\r', '\n'])) {
                return Err(format!("line {line} goes on behind a quote"));
            }
            return Ok((value, true));
        }
        let end = self.rest.find([',', '\r', '\n']).unwrap_or(self.rest.len());
        let value = self.rest[..end].to_owned();
        self.rest = &self.rest[end..];
        Ok((value, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<String>> {
        let Table { header, mut rows } = Table::parse(text).unwrap();
        rows.insert(0, header);
        rows
    }

    #[test]
    fn values_stand_with_and_without_quotes() {
        assert_eq!(rows("\u{feff}a,b\r\n1, 2 \r\n"), [["a", "b"], ["1", "2"]]);
        assert_eq!(
            rows("a,b\n\"x,\"\"y\"\"\",\"l1\nl2\"\n\n,"),
            [["a", "b"], ["x,\"y\"", "l1\nl2"], ["", ""]]
        );
        assert_eq!(Table::parse("a,b\n").unwrap().column("b"), Some(1));
        assert_eq!(header("a,\"b\"\n1,\"unfin"), Some(vec!["a".to_owned(), "b".to_owned()]));
    }

    #[test]
    fn what_is_wrong_is_said_by_line() {
        assert_eq!(Table::parse("").unwrap_err(), "the table is empty");
        assert_eq!(
            Table::parse("a,b\n\"1\n\",2\n3").unwrap_err(),
            "line 4 has 1 values, where the header has 2"
        );
        assert_eq!(Table::parse("a\n\"1").unwrap_err(), "a quote of line 2 is not closed");
        assert_eq!(Table::parse("a\n\"1\"x").unwrap_err(), "line 2 goes on behind a quote");
    }
}
