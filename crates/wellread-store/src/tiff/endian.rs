//! Byte order of a file and of the numbers in it.

/// Byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Endian {
    /// `II`
    Little,
    /// `MM`
    Big,
}

impl Endian {
    /// The number at the start of `bytes`.
    pub fn u16(self, bytes: &[u8]) -> u16 {
        let bytes = [bytes[0], bytes[1]];
        if self == Self::Little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) }
    }

    /// The number at the start of `bytes`.
    pub fn u32(self, bytes: &[u8]) -> u32 {
        let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
        if self == Self::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) }
    }

    /// The number at the start of `bytes`.
    pub fn u64(self, bytes: &[u8]) -> u64 {
        let bytes = bytes[..8].try_into().expect("8 bytes");
        if self == Self::Little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) }
    }
}
