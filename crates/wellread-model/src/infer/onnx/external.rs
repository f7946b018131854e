//! Files beside an ONNX file that hold its larger tensors, found without reading any tensor.
//!
//! ```text
//!  ModelProto ─▶ GraphProto ─┬▶ initializers ─────────────┐
//!                            └▶ nodes ─▶ attributes ──────┴▶ TensorProto ─▶ external_data: location
//! ```
//!
//! Field numbers are those of `onnx.proto3`.

use super::proto::read_varint;
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::{Path, PathBuf};

/// Messages within each other at most, as in protobuf's own libraries.
const MAX_DEPTH: usize = 100;
/// The field of a tensor that says where its data are, and its value for another file.
const DATA_LOCATION: u64 = 14;
const EXTERNAL: u64 = 1;

/// The files that hold tensors of the ONNX file at `path`, in order of their names. Locations are relative to its folder.
///
/// # Errors
/// A file that cannot be read, or that is no ONNX file. The message leaves naming it to the caller.
pub fn external_files(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e: io::Error| Error::new(format_args!("cannot be read as an ONNX file: {e}"));
    let file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let locations = locations(BufReader::new(file), length).map_err(failed)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(locations.into_iter().map(|location| folder.join(location)).collect())
}

/// The locations in a model of `length` bytes.
fn locations(from: impl Read + Seek, length: u64) -> io::Result<BTreeSet<String>> {
    let mut reader = Reader { from, at: 0, found: BTreeSet::new() };
    reader.message(Kind::Model, length, 0)?;
    Ok(reader.found)
}

/// The messages that lead to tensors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Model,
    Training,
    Function,
    Graph,
    Node,
    Attribute,
    SparseTensor,
    Tensor,
    Entry,
}

impl Kind {
    /// The message in a field, where it leads to tensors.
    fn child(self, field: u64) -> Option<Self> {
        Some(match (self, field) {
            (Self::Model, 7) | (Self::Training, 1 | 2) | (Self::Attribute, 6 | 11) => Self::Graph,
            (Self::Model, 20) => Self::Training,
            (Self::Model, 25) => Self::Function,
            (Self::Graph, 1) | (Self::Function, 7) => Self::Node,
            (Self::Node, 5) | (Self::Function, 11) => Self::Attribute,
            (Self::Graph, 5) | (Self::Attribute, 5 | 10) | (Self::SparseTensor, 1 | 2) => Self::Tensor,
            (Self::Graph, 15) | (Self::Attribute, 22 | 23) => Self::SparseTensor,
            (Self::Tensor, 13) => Self::Entry,
            _ => return None,
        })
    }
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

struct Reader<R> {
    from: R,
    at: u64,
    found: BTreeSet<String>,
}

impl<R: Read + Seek> Reader<R> {
    /// Reads the fields of a message that ends at `end`; those that lead to no tensor are skipped.
    fn message(&mut self, kind: Kind, end: u64, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(damaged("its messages are too deep within each other"));
        }
        let (mut location, mut is_external) = (None, false);
        while self.at < end {
            let tag = self.varint()?;
            let (field, wire) = (tag >> 3, tag & 7);
            let length = match wire {
                0 => {
                    let value = self.varint()?;
                    is_external |= kind == Kind::Tensor && field == DATA_LOCATION && value == EXTERNAL;
                    0
                }
                1 => 8,
                2 => self.varint()?,
                5 => 4,
                _ => return Err(damaged("a field is of no kind that ONNX has")),
            };
            let next = self.at.checked_add(length).filter(|next| *next <= end);
            let next = next.ok_or_else(|| damaged("a field ends behind its message"))?;
            match kind.child(field).filter(|_| wire == 2) {
                Some(Kind::Entry) => location = self.location(length)?.or(location),
                Some(child) => self.message(child, next, depth + 1)?,
                None => self.from.seek_relative(length as i64)?,
            }
            self.at = next;
        }
        if is_external {
            self.found.extend(location);
        }
        Ok(())
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 10];
        for length in 1..=bytes.len() {
            self.from.read_exact(&mut bytes[length - 1..length])?;
            self.at += 1;
            if let Some(value) = read_varint(&mut &bytes[..length]) {
                return Ok(value);
            }
        }
        Err(damaged("a number has more than ten bytes"))
    }

    /// The location that an entry of `length` bytes gives; `None` where it is of another key.
    fn location(&mut self, length: u64) -> io::Result<Option<String>> {
        let mut bytes = vec![0; length as usize];
        self.from.read_exact(&mut bytes)?;
        let (mut key, mut value, mut rest): (&[u8], &[u8], &[u8]) = (&[], &[], &bytes);
        while !rest.is_empty() {
            let tag = read_varint(&mut rest);
            let field = read_varint(&mut rest).and_then(|length| rest.split_at_checked(length as usize));
            let (content, tail) = field.ok_or_else(|| damaged("an entry of external data is cut short"))?;
            match tag {
                Some(0x0a) => key = content,
                Some(0x12) => value = content,
                _ => (),
            }
            rest = tail;
        }
        Ok((key == b"location").then(|| String::from_utf8_lossy(value).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::proto::Message;
    use super::*;
    use std::io::Cursor;

    fn message(fields: &[(u32, &Message)]) -> Message {
        let mut message = Message::default();
        message.int(99, 300).float(98, 1.0);
        for (field, value) in fields {
            message.message(*field, value);
        }
        message
    }

    fn entry(key: &str, value: &str) -> Message {
        let mut entry = Message::default();
        entry.text(1, key).text(2, value);
        entry
    }

    fn tensor(location: &str, data_location: i64) -> Message {
        let mut tensor = message(&[(13, &entry("location", location)), (13, &entry("length", "40"))]);
        tensor.bytes(9, &[0xff; 300]).int(14, data_location);
        tensor
    }

    #[test]
    fn locations_are_found_wherever_a_tensor_may_be() {
        let inner = message(&[(5, &tensor("loop.data", 1))]);
        let attribute = message(&[(5, &tensor("sub/constant.data", 1)), (6, &inner)]);
        let node = message(&[(5, &attribute)]);
        let sparse = message(&[(1, &tensor("sparse.data", 1))]);
        let weights = [tensor("model.onnx.data", 1), tensor("model.onnx.data", 1), tensor("unused.data", 0)];
        let graph =
            message(&[(5, &weights[0]), (5, &weights[1]), (5, &weights[2]), (1, &node), (15, &sparse)]);
        let function = message(&[(7, &message(&[(5, &message(&[(5, &tensor("function.data", 1))]))]))]);
        let model = message(&[(7, &graph), (25, &function)]).into_bytes();
        let length = model.len() as u64;
        let found: Vec<String> = locations(Cursor::new(&model), length).unwrap().into_iter().collect();
        let expected = ["function.data", "loop.data", "model.onnx.data", "sparse.data", "sub/constant.data"];
        assert_eq!(found, expected);
        // Cut short within the last field.
        assert!(locations(Cursor::new(&model[..model.len() - 1]), length - 1).is_err());
        assert!(locations(Cursor::new(b"no model"), 8).is_err());
    }

    #[test]
    fn messages_without_end_are_refused() {
        let mut graph = Message::default();
        for _ in 0..MAX_DEPTH {
            graph = message(&[(1, &message(&[(5, &message(&[(6, &graph)]))]))]);
        }
        let model = message(&[(7, &graph)]).into_bytes();
        let length = model.len() as u64;
        let error = locations(Cursor::new(model), length).unwrap_err();
        assert!(error.to_string().contains("too deep"), "{error}");
    }
}
