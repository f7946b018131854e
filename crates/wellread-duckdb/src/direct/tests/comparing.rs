//! Rows read here and by DuckDB, as numbers that must agree.

use crate::DuckTable;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};
use wellread_store::FormatContext;
use wellread_store::table::{ImageTable, Numbers, RowPieces, Rows};

/// Numbers of a sequence that looks random.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}

/// All that is in an array, as numbers: lengths of lists, bits of values, and marks of nulls. Structs give the
/// fields that `like` has.
pub(super) fn numbers(array: &dyn Array, like: &DataType, out: &mut Vec<u64>) {
    macro_rules! primitive {
        ($type:ty, $to:expr) => {
            out.extend(array.as_primitive::<$type>().iter().map(|v| v.map_or(NULL, $to)))
        };
    }
    match array.data_type() {
        DataType::Int8 => primitive!(Int8Type, |v| v as i64 as u64),
        DataType::Int16 => primitive!(Int16Type, |v| v as i64 as u64),
        DataType::Int32 => primitive!(Int32Type, |v| v as i64 as u64),
        DataType::Int64 => primitive!(Int64Type, |v| v as u64),
        DataType::UInt8 => primitive!(UInt8Type, u64::from),
        DataType::UInt16 => primitive!(UInt16Type, u64::from),
        DataType::UInt32 => primitive!(UInt32Type, u64::from),
        DataType::UInt64 => primitive!(UInt64Type, |v| v),
        DataType::Float32 => primitive!(Float32Type, |v| u64::from(v.to_bits())),
        DataType::Float64 => primitive!(Float64Type, f64::to_bits),
        DataType::Struct(_) | DataType::List(_) => (0..array.len()).for_each(|i| {
            // Lists without elements are as good as none.
            let is_empty = array.as_list_opt::<i32>().is_some_and(|list| list.value(i).is_empty());
            out.push(if array.is_null(i) || is_empty { NULL } else { 1 });
            match (array.as_struct_opt(), like) {
                _ if array.is_null(i) || is_empty => {}
                (Some(structure), DataType::Struct(fields)) => fields.iter().for_each(|f| {
                    let column = structure.column_by_name(f.name()).unwrap();
                    numbers(&column.slice(i, 1), f.data_type(), out);
                }),
                (None, DataType::List(element)) => {
                    let list = array.as_list::<i32>().value(i);
                    out.push(list.len() as u64);
                    numbers(&list, element.data_type(), out);
                }
                other => panic!("{other:?}"),
            }
        }),
        other => panic!("{other}"),
    }
}

/// Stands for a null.
pub(super) const NULL: u64 = 0x6e75_6c6c_6e75_6c6c;

/// Batches as numbers, row by row, of the fields that `like` has.
fn collect(
    like: &Schema,
    read: impl FnOnce(&mut dyn FnMut(RecordBatch) -> wellread_store::Result<()>),
) -> Vec<u64> {
    let mut out = vec![];
    read(&mut |batch| {
        for row in 0..batch.num_rows() {
            for (column, field) in batch.columns().iter().zip(like.fields()) {
                numbers(&column.slice(row, 1), field.data_type(), &mut out);
            }
        }
        Ok(())
    });
    out
}

/// Reads rows here and by DuckDB, which must agree.
pub(super) fn compare(table: &DuckTable, columns: &[Vec<String>], rows: &Rows<'_>) -> Vec<u64> {
    let direct = table.direct(columns).expect("read here");
    let here =
        collect(&direct.schema, |each| direct.read(rows, &mut FormatContext::default(), each).unwrap());
    let there = collect(&direct.schema, |each| table.read_by_query(rows.clone(), columns, each).unwrap());
    assert!(here == there, "{columns:?} {rows:?}");
    here
}

/// Reads chunks row by row without arrays, where that can be, and with them: which must agree.
fn compare_pieces(table: &DuckTable, rows: &[usize]) {
    for columns in table.pieces() {
        let Some(direct) = table.direct(&columns) else { continue };
        let [image] = direct.schema.fields().as_ref() else { panic!("one column") };
        let DataType::Struct(lists) = image.data_type() else { panic!("a struct") };
        let DataType::List(element) = lists[0].data_type() else { panic!("a list") };
        let DataType::Struct(fields) = element.data_type() else { panic!("a list of structs") };
        let mut here = vec![];
        let mut each = |at: usize, row: &dyn RowPieces| {
            assert_eq!(at, here.len());
            let mut out = vec![1];
            out.extend(if row.is_empty() { vec![NULL] } else { vec![1, row.len() as u64] });
            for piece in 0..row.len() {
                out.push(1);
                for field in fields {
                    let column = columns.iter().position(|path| path[2] == *field.name()).unwrap();
                    if column + 1 < columns.len() {
                        out.push(row.number(column, piece).map_or(NULL, |n| n as u64));
                        continue;
                    }
                    let Numbers { data_type, bytes } = row.pixels(piece);
                    let size = data_type.primitive_width().unwrap();
                    let count = (bytes.len() / size) as u64;
                    out.extend(if count == 0 { vec![NULL] } else { vec![1, count] });
                    out.extend(bytes.chunks_exact(size).enumerate().map(|(i, value)| {
                        let bits = value.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
                        let whole = Numbers { data_type, bytes }.whole(i);
                        whole.map_or(bits, |n| n as u64)
                    }));
                }
            }
            here.push(out);
            Ok(())
        };
        let read = direct.read_pieces(rows, &mut FormatContext::default(), &mut each).unwrap();
        assert_eq!(read, if direct.pieces.is_some() { rows.len() } else { 0 });
        let mut at = 0;
        let all = Rows::Chosen(rows);
        let batches = |batch: RecordBatch| {
            for row in 0..batch.num_rows() {
                let mut there = vec![];
                numbers(&batch.column(0).slice(row, 1), image.data_type(), &mut there);
                // Null images are known before anybody asks for their pieces.
                assert!(at >= read || here[at] == there || there == [NULL], "row {}", rows[at]);
                at += 1;
            }
            Ok(())
        };
        direct.read(&all, &mut FormatContext::default(), &mut { batches }).unwrap();
        assert_eq!(at, rows.len());
    }
}

/// Compares all rows, single rows, and some.
pub(super) fn compare_all(table: &DuckTable, columns: &[Vec<String>]) -> Vec<u64> {
    let mut random = Random(table.len() as u64);
    for _ in 0..4 {
        compare(table, columns, &Rows::Chosen(&[random.next(table.len())]));
        let mut some: Vec<usize> = (0..9).map(|_| random.next(table.len())).collect();
        some.sort_unstable();
        some.dedup();
        compare(table, columns, &Rows::Chosen(&some));
        compare_pieces(table, &some);
        let start = random.next(table.len());
        compare(table, columns, &Rows::Range(start..(start + random.next(40)).min(table.len())));
    }
    compare(table, columns, &Rows::Range(0..table.len()))
}

/// Looks at all pieces that can be read: how many rows those are.
pub(super) fn touch_pieces(table: &DuckTable, columns: &[Vec<String>]) -> usize {
    let Some(direct) = table.direct(columns) else { return 0 };
    let rows: Vec<usize> = (0..table.len()).collect();
    let mut each = |_, row: &dyn RowPieces| {
        for piece in 0..row.len() {
            for column in 0..columns.len() - 1 {
                std::hint::black_box(row.number(column, piece));
            }
            std::hint::black_box(row.pixels(piece).bytes.iter().fold(0, |n, &byte| n ^ byte));
        }
        Ok(())
    };
    direct.read_pieces(&rows, &mut FormatContext::default(), &mut each).unwrap()
}
