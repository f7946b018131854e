//! Event files that TensorBoard reads: scalars only.
//!
//! A file is a row of records, each `length u64 | masked CRC-32C of it | data | masked CRC-32C of that`, little-endian; the
//! data is a protocol buffer `Event` (tensorflow/core/util/event.proto). The few fields of it that scalars need are
//! written here.

use anyhow::{Context as _, Result};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// An event file being written.
pub struct Events {
    file: File,
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64())
}

fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn varint(mut value: u64, to: &mut Vec<u8>) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// A field of bytes: a text or a message.
fn bytes_field(number: u64, bytes: &[u8], to: &mut Vec<u8>) {
    varint(number << 3 | 2, to);
    varint(bytes.len() as u64, to);
    to.extend_from_slice(bytes);
}

/// An event at `step` with what follows its time and step.
fn event(step: u64, rest: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut event = vec![1 << 3 | 1];
    event.extend(now().to_le_bytes());
    event.push(2 << 3);
    varint(step, &mut event);
    rest(&mut event);
    event
}

fn record(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut record = length.to_vec();
    record.extend(masked_crc(&length).to_le_bytes());
    record.extend_from_slice(data);
    record.extend(masked_crc(data).to_le_bytes());
    record
}

impl Events {
    /// Begins a file in `folder`, named as TensorBoard looks for it.
    ///
    /// # Errors
    /// A file that cannot be made.
    pub fn create(folder: &Path) -> Result<Self> {
        let name = format!("events.out.tfevents.{}.wellread.{}", now() as u64, std::process::id());
        let path = folder.join(name);
        let file = File::options().create(true).append(true).open(&path);
        let mut events = Self { file: file.with_context(|| format!("cannot make {}", path.display()))? };
        events.write(&event(0, |event| bytes_field(3, b"brain.Event:2", event)))?;
        Ok(events)
    }

    fn write(&mut self, event: &[u8]) -> Result<()> {
        // One write, so that what a killed process leaves is whole records.
        self.file.write_all(&record(event)).context("cannot write the event file")
    }

    /// Adds scalars at a step.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn scalars(&mut self, step: u64, values: &[(&str, f64)]) -> Result<()> {
        let mut summary = vec![];
        for (tag, value) in values {
            let mut one = vec![];
            bytes_field(1, tag.as_bytes(), &mut one);
            one.push(2 << 3 | 5);
            one.extend((*value as f32).to_le_bytes());
            bytes_field(1, &one, &mut summary);
        }
        self.write(&event(step, |event| bytes_field(5, &summary, event)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_hold_what_was_written_and_their_checksums() {
        // RFC 3720's check value of the polynomial, then TensorFlow's mask.
        assert_eq!(crc32c::crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(masked_crc(&[0; 32]), 0x8a91_36aa_u32.rotate_right(15).wrapping_add(0xa282_ead8));
        let folder = tempfile::tempdir().unwrap();
        let mut events = Events::create(folder.path()).unwrap();
        events.scalars(300, &[("loss/train", 0.5), ("dice", 1.0)]).unwrap();
        let path = folder.path().read_dir().unwrap().next().unwrap().unwrap().path();
        let bytes = std::fs::read(path).unwrap();
        let mut at = &bytes[..];
        let mut data = vec![];
        while !at.is_empty() {
            let (length, rest) = at.split_at(8);
            let n = u64::from_le_bytes(length.try_into().unwrap()) as usize;
            let crc = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
            assert_eq!(crc(rest), masked_crc(length));
            assert_eq!(crc(&rest[4 + n..]), masked_crc(&rest[4..4 + n]));
            data.push(rest[4..4 + n].to_vec());
            at = &rest[n + 8..];
        }
        assert_eq!(data.len(), 2);
        assert!(data[0].ends_with(b"\x1a\x0dbrain.Event:2"));
        // Step 300, then the summary of two values.
        assert_eq!(data[1][9..12], [0x10, 0xac, 0x02]);
        let mut expected = b"\x0a\x0f\x0a\x0aloss/train\x15".to_vec();
        expected[1] = 17;
        expected.extend(0.5f32.to_le_bytes());
        expected.extend(b"\x0a\x0b\x0a\x04dice\x15");
        expected.extend(1f32.to_le_bytes());
        assert_eq!(data[1][14..], expected);
    }
}
