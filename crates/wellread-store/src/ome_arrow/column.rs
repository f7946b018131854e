//! Which column of an Arrow schema holds images, and which stand beside it.

use super::boxes::AXES;
use crate::surface::for_cells;
use crate::words::first_few;
use crate::{Error, LeftOut, Result, features};
use arrow_schema::{DataType, Field, Fields, Schema};
use std::path::Path;
use wellread_image::ome_arrow::{COLUMN, Pieces, Variant, field};

/// Names of columns that an error lists, at most.
const MAX_LISTED: usize = 20;

/// The image column of a table.
#[derive(Clone, Debug)]
pub(crate) struct ImageColumn {
    /// Its name.
    pub name: String,
    /// Whether it has the list `chunks`, and the list `planes`, with pixels in them.
    pub has: [bool; 2],
    /// Whether pixels are 64 bits wide.
    inferred: bool,
    fields: Fields,
    /// See [`Self::pieces`].
    pieces: [Vec<Vec<String>>; 2],
    /// See [`Self::axes`].
    axes: [[Option<usize>; AXES]; 2],
    /// Whether the images' sizes and each list's boxes are integers that 64 bits with a sign hold, as their types tell. Others are looked at, all of
    /// a record batch, before any is used.
    pub is_cheap: [bool; 2],
    /// Columns of plain values that stand beside it, the row number among them.
    pub features: Vec<String>,
    /// All other columns that stand beside it: [`crate::Hints::columns_left_out`].
    pub left_out: Vec<LeftOut>,
}

/// Index of the list `chunks` in everything that runs parallel to both lists of pixels.
pub(crate) const CHUNKS: usize = 0;
/// Index of the list `planes`.
pub(crate) const PLANES: usize = 1;
/// The two lists of pixels by their indices.
pub(crate) const LISTS: [&str; 2] = [field::CHUNKS, field::PLANES];

/// The error of a table of these columns, none of which is called `wanted`.
pub(crate) fn no_such_column(path: &Path, names: &[&str], wanted: &str) -> Error {
    let hint = format!("its columns are: {}", first_few(names, MAX_LISTED));
    Error::new(path, format_args!("has no column {wanted:?}")).choice().hint(hint)
}

/// The first of these columns that names files of images, as in CellProfiler's tables of files.
fn files_column<'a>(names: &[&'a str]) -> Option<&'a str> {
    let is_one = |name: &&str| {
        let channel = name.strip_prefix("FileName_").or_else(|| name.strip_prefix("URL_"));
        channel.is_some_and(|channel| !channel.starts_with("Illum"))
    };
    names.iter().copied().find(is_one)
}

/// The error of a table of these columns, none of which holds images. `close` is the one that comes close or was asked for, and
/// why it is none.
pub(crate) fn no_image_column(path: &Path, names: &[&str], close: Option<(&str, &str)>) -> Error {
    let built = format!(
        "an image column is an OME-Arrow struct such as {COLUMN:?}, with pixels_meta and chunks or planes"
    );
    let Some((name, why)) = close else {
        let listed = first_few(names, MAX_LISTED);
        let cause = format_args!("has no image column; its columns are: {listed}");
        let first = match files_column(names) {
            Some(name) => {
                format!("{name} names files of images: write the table as load_data.csv, and open that file")
            }
            None => built,
        };
        return Error::new(path, cause).hint(format_args!("{first}. {}", for_cells()));
    };
    Error::new(path, format_args!("column {name:?} holds no images: {why}")).hint(built)
}

impl ImageColumn {
    /// Finds it: the column called `wanted`, or the first that is built like one.
    ///
    /// # Errors
    /// There is none; the message lists the columns there are.
    pub fn find(path: &Path, schema: &Schema, wanted: Option<&str>) -> Result<Self> {
        let names: Vec<_> = schema.fields().iter().map(|f| f.name().as_str()).collect();
        if let Some(wanted) = wanted.filter(|w| !names.contains(w)) {
            return Err(no_such_column(path, &names, wanted));
        }
        let mut reason = None;
        for column in schema.fields().iter().filter(|f| wanted.is_none_or(|w| f.name() == w)) {
            match Self::of(column) {
                Ok(mut found) => {
                    found.features = features::names(schema, &found.name);
                    found.left_out = features::left_out(schema, &found.name);
                    return Ok(found);
                }
                Err((is_close, why)) => {
                    if wanted.is_some() || is_close {
                        reason.get_or_insert((column.name(), why));
                    }
                }
            }
        }
        Err(no_image_column(path, &names, reason.as_ref().map(|(name, why)| (name.as_str(), why.as_str()))))
    }

    /// The column as one of images, or why it is none and whether it comes close.
    fn of(column: &Field) -> std::result::Result<Self, (bool, String)> {
        let DataType::Struct(fields) = column.data_type() else {
            return Err((false, "it is not a struct".into()));
        };
        let Some(DataType::Struct(meta)) = child(fields, field::PIXELS_META) else {
            return Err((false, "it has no pixels_meta".into()));
        };
        for name in [field::SIZES[3], field::SIZES[4], field::TYPE] {
            if child(meta, name).is_none() {
                return Err((true, format!("pixels_meta has no {name}")));
            }
        }
        let mut why = None;
        let mut inferred = false;
        let has = LISTS.map(|list| match pixels(fields, list) {
            Ok(None) => false,
            Ok(Some(pixels)) => {
                inferred |= matches!(pixels, DataType::Int64 | DataType::UInt64);
                true
            }
            Err(reason) => {
                why.get_or_insert(reason);
                false
            }
        });
        if has == [false; 2] {
            return Err((true, why.unwrap_or_else(|| "it has neither chunks nor planes".into())));
        }
        let mut this = Self {
            name: column.name().clone(),
            has,
            inferred,
            fields: fields.clone(),
            pieces: [vec![], vec![]],
            axes: Default::default(),
            is_cheap: [false; 2],
            features: vec![],
            left_out: vec![],
        };
        this.pieces = LISTS.map(|list| {
            let names = field::ORIGIN.iter().chain(&field::CHUNK_SHAPE).chain([&field::PIXELS]);
            this.paths(names.map(|name| [list, name]))
        });
        this.axes = [CHUNKS, PLANES].map(|list| {
            let mut names = field::ORIGIN.into_iter().chain(field::CHUNK_SHAPE);
            let at = |name: &str| this.pieces[list].iter().position(|path| path[2] == name);
            std::array::from_fn(|_| names.next().and_then(at))
        });
        this.is_cheap = LISTS.map(|list| {
            let members = child(fields, list).and_then(members).into_iter().flatten();
            let names = [&field::ORIGIN[..], &field::CHUNK_SHAPE, &field::SIZES].concat();
            let numbers = members.chain(meta).filter(|f| names.contains(&f.name().as_str()));
            numbers.map(|f| f.data_type()).all(|of| of.is_integer() && *of != DataType::UInt64)
        });
        Ok(this)
    }

    /// Takes columns from those beside it that are none of plain values, whatever their Arrow types are.
    pub fn leave_out(&mut self, columns: Vec<LeftOut>) {
        let is_one = |name: &str| columns.iter().any(|column| column.name == name);
        self.features.retain(|name| !is_one(name));
        self.left_out.retain(|column| !is_one(&column.name));
        self.left_out.extend(columns);
    }

    /// The variant of OME-Arrow that this is; `filled` says of each list whether it has anything in it.
    pub fn variant(&self, filled: [bool; 2]) -> Variant {
        let pieces = match filled {
            [true, true] => Pieces::Both,
            [false, true] => Pieces::Planes,
            _ => Pieces::Chunks,
        };
        Variant { inferred: self.inferred, pieces }
    }

    /// Paths of sizes, types and the order of chunks.
    pub fn index(&self) -> Vec<Vec<String>> {
        let sizes = field::SIZES.iter().chain([&field::TYPE]).map(|name| [field::PIXELS_META, name]);
        self.paths(sizes.chain([[field::CHUNK_GRID, field::CHUNK_ORDER]]))
    }

    /// Paths of everything but pixels.
    pub fn metadata(&self) -> Vec<Vec<String>> {
        let apart = [field::CHUNKS, field::PLANES, field::MASKS];
        let typed = self.fields.iter().filter(|f| *f.data_type() != DataType::Null);
        let names = typed.map(|f| f.name().as_str()).filter(|n| !apart.contains(n));
        names.map(|name| vec![self.name.clone(), name.to_owned()]).collect()
    }

    /// Whether the column has a place for masks. One whose type holds none is what writers make of masks that nobody has.
    pub fn has_masks(&self) -> bool {
        child(&self.fields, field::MASKS).is_some_and(DataType::is_nested)
    }

    /// Paths of one of the lists of pixels: boxes and, last, pixels.
    pub fn pieces(&self, list: usize) -> &[Vec<String>] {
        &self.pieces[list]
    }

    /// For each number of a piece's box (see [`AXES`]), which of [`Self::pieces`] it is.
    pub fn axes(&self, list: usize) -> &[Option<usize>; AXES] {
        &self.axes[list]
    }

    /// Those of the paths below the column that the schema has.
    fn paths<'a>(&self, wanted: impl Iterator<Item = [&'a str; 2]>) -> Vec<Vec<String>> {
        let there = |path: &[&str; 2]| {
            child(&self.fields, path[0]).and_then(members).is_some_and(|f| child(f, path[1]).is_some())
        };
        let full = |path: [&str; 2]| vec![self.name.clone(), path[0].to_owned(), path[1].to_owned()];
        wanted.filter(there).map(full).collect()
    }
}

fn child<'a>(fields: &'a Fields, name: &str) -> Option<&'a DataType> {
    fields.iter().find(|f| f.name() == name).map(|f| f.data_type())
}

/// Type of the elements of a list type.
fn element(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(f)
        | DataType::LargeList(f)
        | DataType::ListView(f)
        | DataType::LargeListView(f)
        | DataType::FixedSizeList(f, _) => Some(f.data_type()),
        _ => None,
    }
}

/// Fields of a struct, or of the structs in a list.
fn members(of: &DataType) -> Option<&Fields> {
    match element(of).unwrap_or(of) {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    }
}

/// Type of the pixels in a list of pieces; `None` where there is no such list.
fn pixels<'a>(fields: &'a Fields, list: &str) -> std::result::Result<Option<&'a DataType>, String> {
    let Some(found) = child(fields, list) else { return Ok(None) };
    let Some(DataType::Struct(members)) = element(found) else {
        return Err(format!("{list} is not a list of structs"));
    };
    match child(members, field::PIXELS) {
        Some(pixels) => match element(pixels) {
            Some(DataType::Null) => Err(format!("{list}.pixels has no values")),
            Some(values) if values.is_numeric() => Ok(Some(values)),
            _ => Err(format!("{list}.pixels is not a list of numbers")),
        },
        None if child(members, field::PIXEL_BYTES).is_some() => {
            Err(format!("{list} holds packed pixel_bytes (ome-arrow's byte variant), not lists of pixels"))
        }
        None => Err(format!("{list} has no list of pixels")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_files_is_told_from_one_of_cells() {
        let hint = |names: &[&str]| {
            let error = no_image_column(Path::new("load_data_with_illum.parquet"), names, None);
            error.hint_text().unwrap().to_owned()
        };
        let of_files = hint(&["Metadata_Well", "FileName_IllumDNA", "FileName_OrigDNA", "PathName_OrigDNA"]);
        assert!(
            of_files.starts_with("FileName_OrigDNA names files of images: write the table as load_data.csv")
        );
        assert!(hint(&["URL_OrigER"]).starts_with("URL_OrigER names files"), "{of_files}");
        for names in [&["Metadata_Well", "x", "y"][..], &["FileName_IllumDNA"]] {
            let other = hint(names);
            assert!(
                other.starts_with("an image column is") && other.contains("A table with a row for each cell")
            );
        }
    }
}
