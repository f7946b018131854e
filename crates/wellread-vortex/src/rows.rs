//! Rows where they lie: the pieces that hold them, and images read from those without arrays.
//!
//! ```text
//!  rows ──Located──▶ pieces, and which row of each ──▶ arrays (`gather`)
//!                                                  ──ImageList──▶ chunks and planes: numbers and pixels as they lie
//! ```

use crate::gather::prefetch;
use crate::piece::{Leaf, Piece, Plain};
use crate::session::Cause;
use crate::tree::{Column, Series, Source};
use std::ops::Range;
use std::sync::Arc;
use vortex::dtype::PType;
use wellread_store::direct::{PieceColumns, PieceValues, PiecesOfRow, WantedFields};
use wellread_store::table::arrow_schema::DataType;
use wellread_store::table::{Columns, Numbers};

/// Numbers of a chunk or plane that are asked for, at most: where it starts along five axes, its size along three.
const NUMBERS: usize = 8;

/// A piece that is held on to.
pub(crate) struct HeldPiece {
    pub piece: Arc<Piece>,
    /// Rows of the table that the piece has.
    span: Range<usize>,
}

impl HeldPiece {
    /// The row of the table that is the piece's first one.
    pub fn first_row(&self) -> usize {
        self.span.start
    }
}

/// Where some rows of a series lie.
#[derive(Default)]
pub(crate) struct Located {
    /// Pieces that are held on to, the one of the last row last. Once each: counters of references that several threads
    /// change are as slow as memory.
    pub held: Vec<HeldPiece>,
    /// Where the rows lie that were looked up: which of the pieces, and which row of it.
    pub found: Vec<(usize, usize)>,
}

impl Located {
    /// Lets go of all pieces but the last one.
    pub fn release(&mut self) {
        self.held.drain(..self.held.len().saturating_sub(1));
    }

    /// Lets go of all.
    pub fn clear(&mut self) {
        self.held.clear();
        self.found.clear();
    }

    /// Finds the pieces of the next rows, and has the processor fetch what is `wanted` of them.
    pub fn look_up(
        &mut self,
        rows: &[usize],
        series: &Series,
        wanted: &WantedFields,
        source: &Source,
    ) -> Result<(), Cause> {
        self.found.clear();
        series.fetch(rows, source)?;
        for &row in rows {
            // The piece of the last row is likely to have the next one too.
            if !self.held.last().is_some_and(|held| held.span.contains(&row)) {
                let (piece, span) = series.piece(row, source)?;
                self.held.push(HeldPiece { piece, span });
            }
            let Some(last) = self.held.last() else { continue };
            let at = row - last.span.start;
            self.found.push((self.held.len() - 1, at));
            prefetch(&last.piece, &(at..at + 1), wanted, 0);
        }
        Ok(())
    }

    /// Has the processor fetch what lies below so many lists of the rows.
    pub fn prefetch(&self, wanted: &WantedFields, level: usize) {
        for &(number, at) in &self.found {
            prefetch(&self.held[number].piece, &(at..at + 1), wanted, level);
        }
    }
}

/// Where the columns of a read lie, which are numbers of the structs in one list, and last the pixels of each.
pub(crate) struct ImageList {
    /// Which field leads to the series, from the table on.
    fields: Vec<usize>,
    /// Names of the fields that lead there, and those that lead from its pieces to the list.
    names: Vec<String>,
    within: Vec<String>,
    /// Names of the numbers.
    numbers: Vec<String>,
    /// Name of the list of pixels.
    pixels: String,
}

impl ImageList {
    /// `None` where `columns` of the table are something else.
    pub fn new(columns: &Columns, table: &Column) -> Option<Self> {
        let PieceColumns { list, numbers, pixels } = PieceColumns::of(columns)?;
        let (mut column, mut within, mut at) = (table, list, vec![]);
        while let Column::Struct { fields, .. } = column {
            let (name, rest) = within.split_first()?;
            let field = fields.iter().position(|(n, _)| n == name)?;
            at.push(field);
            (column, within) = (&fields[field].1, rest);
        }
        let (names, within) = (list[..at.len()].to_vec(), within.to_vec());
        let numbers: Vec<_> = numbers.into_iter().map(str::to_owned).collect();
        let list = Self { fields: at, names, within, numbers, pixels: pixels.to_owned() };
        (list.numbers.len() <= NUMBERS).then_some(list)
    }

    /// The series that has the list.
    pub fn series<'a>(&self, table: &'a Column) -> Option<&'a Series> {
        let mut column = table;
        for &field in &self.fields {
            let Column::Struct { fields, .. } = column else { return None };
            column = &fields.get(field)?.1;
        }
        if let Column::Series(series) = column { Some(series) } else { None }
    }

    /// Names of the fields that lead to [`Self::series`].
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The list in a piece.
    ///
    /// # Errors
    /// The reason why it cannot be read where it lies.
    pub fn open<'a>(&self, piece: &'a Piece) -> Result<OpenList<'a>, NotBorrowable> {
        let mut list = piece;
        for name in &self.within {
            list = field(list, name).ok_or(NotBorrowable::Odd)?;
        }
        let (rows, structs) = lists(list).ok_or(NotBorrowable::Odd)?;
        let mut numbers = [None; NUMBERS];
        for (number, name) in numbers.iter_mut().zip(&self.numbers) {
            let Some(Piece::Leaf(leaf)) = field(structs, name) else { return Err(NotBorrowable::Odd) };
            match leaf.plain.as_ref().ok_or(NotBorrowable::Compressed)? {
                Plain::Each(of, _) | Plain::Same(of, _) if of.is_int() => *number = Some(leaf),
                _ => return Err(NotBorrowable::Odd),
            }
        }
        let pixels = field(structs, &self.pixels).and_then(lists);
        let Some((pieces, Piece::Leaf(pixels))) = pixels else { return Err(NotBorrowable::Odd) };
        let Plain::Each(of, bytes) = pixels.plain.as_ref().ok_or(NotBorrowable::Compressed)? else {
            return Err(NotBorrowable::Odd);
        };
        Ok(OpenList { rows, numbers, pieces, pixels, of: arrow_type(*of), bytes: bytes.as_slice() })
    }
}

/// Why a list is not read where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotBorrowable {
    /// Its values have to be decompressed: so will others of the file.
    Compressed,
    /// Something in it is null, or all its pixels are the same one, which is not repeated in memory.
    Odd,
}

/// A field of structs of which none is null.
fn field<'a>(structs: &'a Piece, name: &str) -> Option<&'a Piece> {
    let Piece::Struct { names, fields, validity } = structs else { return None };
    let at = names.iter().position(|n| n.as_ref() == name).filter(|_| validity.all_true())?;
    fields.get(at)
}

/// The bounds and elements of lists of which none is null.
fn lists(of: &Piece) -> Option<(&[(usize, usize)], &Piece)> {
    let Piece::List { bounds, validity, elements } = of else { return None };
    validity.all_true().then_some((&**bounds, &**elements))
}

fn arrow_type(of: PType) -> &'static DataType {
    match of {
        PType::U8 => &DataType::UInt8,
        PType::U16 => &DataType::UInt16,
        PType::U32 => &DataType::UInt32,
        PType::U64 => &DataType::UInt64,
        PType::I8 => &DataType::Int8,
        PType::I16 => &DataType::Int16,
        PType::I32 => &DataType::Int32,
        PType::I64 => &DataType::Int64,
        PType::F16 => &DataType::Float16,
        PType::F32 => &DataType::Float32,
        PType::F64 => &DataType::Float64,
    }
}

/// The chunks or planes of all rows of a piece.
pub(crate) struct OpenList<'a> {
    /// Where those of each row begin and end.
    rows: &'a [(usize, usize)],
    numbers: [Option<&'a Leaf>; NUMBERS],
    /// Where the pixels of each begin and end.
    pieces: &'a [(usize, usize)],
    pixels: &'a Leaf,
    of: &'static DataType,
    bytes: &'a [u8],
}

impl OpenList<'_> {
    /// Those of one row; `None` where fields of a struct differ in their length.
    pub fn row(&self, row: usize) -> Option<PiecesOfRow<'_, Self>> {
        let &(start, end) = self.rows.get(row)?;
        // Bounds of lists were checked against their elements when the piece was opened.
        let pixels: usize = self.pieces.get(start..end)?.iter().map(|(start, end)| end - start).sum();
        self.pixels.count_read(pixels);
        for leaf in self.numbers.iter().flatten() {
            leaf.count_read(end - start);
        }
        Some(PiecesOfRow::new(self, start..end))
    }
}

impl PieceValues for OpenList<'_> {
    #[inline]
    fn number(&self, column: usize, at: usize) -> Option<i64> {
        match self.numbers[column]?.plain.as_ref()? {
            Plain::Each(of, bytes) => {
                Numbers { data_type: arrow_type(*of), bytes: bytes.as_slice() }.whole(at)
            }
            Plain::Same(of, value) => Numbers { data_type: arrow_type(*of), bytes: value }.whole(0),
            Plain::Bits(_) => None,
        }
    }

    #[inline]
    fn bounds(&self, at: usize) -> Range<usize> {
        let (start, end) = self.pieces[at];
        start..end
    }

    #[inline]
    fn pixels(&self) -> Numbers<'_> {
        Numbers { data_type: self.of, bytes: self.bytes }
    }
}
