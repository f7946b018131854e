//! Just enough of protobuf for an ONNX file: fields of a message, one after the other.
//!
//! Field numbers are those of `onnx.proto3` (<https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3>), the
//! encoding that of <https://protobuf.dev/programming-guides/encoding/>.

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// The encoded message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// An integer field.
    pub fn int(&mut self, field: u32, value: i64) -> &mut Self {
        self.varint(u64::from(field) << 3);
        self.varint(value as u64);
        self
    }

    /// A field of type `float`.
    pub fn float(&mut self, field: u32, value: f32) -> &mut Self {
        self.varint(u64::from(field) << 3 | 5);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Only the head of a field of `length` bytes, which the caller writes after this message.
    pub fn head(&mut self, field: u32, length: usize) -> &mut Self {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(length as u64);
        self
    }

    /// Another message's fields, or a part of one that was begun by [`Self::head`].
    pub fn append(&mut self, other: &Self) -> &mut Self {
        self.append_bytes(&other.0)
    }

    /// Bytes that belong to a field begun by [`Self::head`].
    pub fn append_bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// A field of bytes.
    pub fn bytes(&mut self, field: u32, value: &[u8]) -> &mut Self {
        self.head(field, value.len());
        self.0.extend_from_slice(value);
        self
    }

    /// A string field.
    pub fn text(&mut self, field: u32, value: &str) -> &mut Self {
        self.bytes(field, value.as_bytes())
    }

    /// A field that is a message itself.
    pub fn message(&mut self, field: u32, value: &Self) -> &mut Self {
        self.bytes(field, &value.0)
    }
}

/// Where the fields of a message end that begins with `head`, of `length` bytes in all: beyond them or before where it is
/// not whole. `None` where the head of a field is not in `head`, or is of a kind that [`Message`] does not write.
pub(super) fn end_of_fields(head: &[u8], length: u64) -> Option<u64> {
    let mut at = 0u64;
    while at < length {
        let mut rest = head.get(usize::try_from(at).ok()?..)?;
        let begin = rest.len();
        let kind = read_varint(&mut rest)? & 7;
        let value = match kind {
            0 => read_varint(&mut rest).map(|_| 0)?,
            2 => read_varint(&mut rest)?,
            5 => 4,
            _ => return None,
        };
        at = at.checked_add((begin - rest.len()) as u64)?.checked_add(value)?;
    }
    Some(at)
}

/// The number at the beginning of `rest`, which then begins behind it; `None` where it is cut short.
pub(super) fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_encoded_as_the_specification_says() {
        // The examples of the encoding guide: 150 in field 1, "testing" in field 2.
        let mut message = Message::default();
        message.int(1, 150).text(2, "testing");
        assert_eq!(message.into_bytes(), b"\x08\x96\x01\x12\x07testing");
        let mut negative = Message::default();
        negative.int(1, -1).float(5, 1.0);
        assert_eq!(
            negative.into_bytes(),
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x2d\x00\x00\x80\x3f"
        );
    }

    #[test]
    fn a_message_that_is_cut_short_does_not_end_where_it_should() {
        let mut message = Message::default();
        message.int(1, 150).text(2, "testing").int(3, -1).float(4, 1.0).bytes(7, &[9; 300]);
        let bytes = message.into_bytes();
        let whole = bytes.len() as u64;
        // The last field's content need not be there to know where it ends.
        assert_eq!(end_of_fields(&bytes[..40], whole), Some(whole));
        for length in 0..whole {
            let ends_between_fields = [0, 3, 12, 23, 28].contains(&length);
            let head = &bytes[..40.min(length as usize)];
            assert_eq!(end_of_fields(head, length) == Some(length), ends_between_fields, "{length}");
        }
        assert_ne!(end_of_fields(&bytes[..40], whole + 1), Some(whole + 1));
        assert_eq!(end_of_fields(&[0xff; 40], 40), None);
    }
}
