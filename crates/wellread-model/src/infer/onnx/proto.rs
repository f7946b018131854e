//! Just enough of protobuf to write an ONNX file: fields of a message, one after the other.
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
}
