//! Blocks that are damaged while a table is open.

use super::comparing::{Random, compare, numbers, touch_pieces};
use super::{chunks, create, database, open};
use crate::direct::{HEADERS, checksum};
use wellread_store::FormatContext;
use wellread_store::table::Rows;

/// The file is changed under an open plan, so that DuckDB is asked nothing. For any bytes, reading ends with rows or a
/// stop.
#[test]
fn damaged_blocks_stop_reading() {
    let dir = tempfile::tempdir().unwrap();
    let mut random = Random(5);
    for (force, kind, pixel) in [
        ("bitpacking", "BIGINT", "hash(i * j) % 5000"),
        ("bitpacking", "USMALLINT", "j * 3 + hash(j) % 9"),
        ("rle", "UTINYINT", "j // 9 % 256"),
        ("alp", "FLOAT", "(hash(j) % 10000) / 100"),
        ("alprd", "DOUBLE", "sin(j)"),
        ("uncompressed", "UINTEGER", "j"),
    ] {
        let path = dir.path().join(kind);
        let sql = format!("PRAGMA force_compression = '{force}'; {}", create(kind, pixel, "3000 + i", 24));
        database(&path, &sql);
        let whole = std::fs::read(&path).unwrap();
        let good = {
            let table = open(&path);
            compare(&table, &chunks(&table), &Rows::Range(0..24))
        };
        let size = 256 << 10;
        let blocks = (whole.len() - HEADERS as usize) / size;
        for round in 0..36 {
            let table = open(&path);
            let direct = table.direct(&chunks(&table)).unwrap();
            // Planned while the file is good.
            for columns in table.pieces() {
                drop(table.direct(&columns));
            }
            let mut bytes = whole.clone();
            let start = HEADERS as usize + random.next(blocks) * size;
            let at = start + 8 + random.next(if round % 2 == 0 { 4096 } else { size - 8 });
            // Some damage that a checksum tells, some that it does not, many bytes or one bit.
            let end = (at + [1, 8, 300][round % 3]).min(start + size);
            for byte in &mut bytes[at..end] {
                *byte ^= if round % 3 == 0 { 1 << random.next(8) } else { random.next(256) as u8 };
            }
            let is_told = round % 4 == 0;
            if !is_told {
                let sum = checksum(bytes[start + 8..start + size].as_chunks::<8>().0);
                bytes[start..start + 8].copy_from_slice(&sum.to_le_bytes());
            }
            std::fs::write(&path, &bytes).unwrap();
            let mut here = vec![];
            let result = direct.read(&Rows::Range(0..24), &mut FormatContext::default(), &mut |batch| {
                let schema = batch.schema();
                for (column, field) in batch.columns().iter().zip(schema.fields()) {
                    for row in 0..batch.num_rows() {
                        numbers(&column.slice(row, 1), field.data_type(), &mut here);
                    }
                }
                Ok(())
            });
            assert!(!is_told || result.is_err() || here.len() == good.len(), "{force}");
            let pieces = table.pieces().into_iter().map(|columns| touch_pieces(&table, &columns));
            assert!(pieces.sum::<usize>() <= 24, "{force}");
            if is_told && result.is_ok() {
                assert!(here == good, "{force}");
            }
            std::fs::write(&path, &whole).unwrap();
        }
        // A file that ends early.
        let table = open(&path);
        let direct = table.direct(&chunks(&table)).unwrap();
        for part in [0, 3, 9] {
            std::fs::write(&path, &whole[..whole.len() * part / 10]).unwrap();
            assert!(
                direct.read(&Rows::Range(0..24), &mut FormatContext::default(), &mut |_| Ok(())).is_err()
            );
        }
    }
}
