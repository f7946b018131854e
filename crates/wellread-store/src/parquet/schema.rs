//! Which column holds images, and which of its leaves hold what.
//!
//! This module works on Parquet's own schema tree, not on an Arrow schema, because projections and the page
//! reader need leaf numbers. All spellings of a list (`item`, `element`, `array`, two levels or three, 64-bit
//! offsets) are one shape there.

use crate::Result;
use crate::numbers::LeafType;
use crate::ome_arrow::{CHUNKS, PLANES, no_image_column, no_such_column};
use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor, Type};
use std::path::Path;
use wellread_image::ome_arrow::{Pieces, Variant, field};

/// The image column and its leaves.
#[derive(Clone, Debug)]
pub(super) struct ImageColumn {
    /// Name of the column.
    pub name: String,
    /// Leaves of sizes, pixel type and chunk order.
    pub sizes: Vec<usize>,
    /// Leaves of everything else but chunks and planes.
    pub metadata: Vec<usize>,
    /// The lists of pixels: chunks, planes. One at least is present.
    pub pieces: [Option<PieceColumn>; 2],
    /// Why the other one cannot be used, where it is there.
    pub note: Option<String>,
}

/// The `chunks` or the `planes` of an image column.
#[derive(Clone, Debug)]
pub(super) struct PieceColumn {
    /// Leaves of origins and shapes.
    pub positions: Vec<usize>,
    /// The leaf of pixels.
    pub pixels: PixelLeaf,
}

/// The leaf column with the pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct PixelLeaf {
    /// Number of the leaf.
    pub leaf: usize,
    /// Type of its values; `None` for types that only the general reader takes.
    pub values: Option<LeafType>,
    /// Largest repetition level.
    pub max_rep: i16,
    /// Largest definition level.
    pub max_def: i16,
}

impl LeafType {
    /// The type of a leaf; `None` for others than plain numbers.
    pub fn of(column: &ColumnDescriptor) -> Option<Self> {
        let unsigned = match column.logical_type_ref() {
            Some(LogicalType::Integer(int)) => !int.is_signed,
            Some(_) => return None,
            None => match column.converted_type() {
                ConvertedType::UINT_8
                | ConvertedType::UINT_16
                | ConvertedType::UINT_32
                | ConvertedType::UINT_64 => true,
                ConvertedType::NONE
                | ConvertedType::INT_8
                | ConvertedType::INT_16
                | ConvertedType::INT_32
                | ConvertedType::INT_64 => false,
                _ => return None,
            },
        };
        match (column.physical_type(), unsigned) {
            (Physical::INT32, false) => Some(Self::I32),
            (Physical::INT32, true) => Some(Self::U32),
            (Physical::INT64, false) => Some(Self::I64),
            (Physical::INT64, true) => Some(Self::U64),
            (Physical::FLOAT, false) => Some(Self::F32),
            (Physical::DOUBLE, false) => Some(Self::F64),
            _ => None,
        }
    }
}

impl ImageColumn {
    /// Finds the image column: the one called `wanted`, or the first that is built like one.
    ///
    /// # Errors
    /// There is none; the message lists the columns there are.
    pub fn find(path: &Path, schema: &SchemaDescriptor, wanted: Option<&str>) -> Result<Self> {
        let root = Node { ty: schema.root_schema(), first: 0 };
        let columns = root.children();
        let names: Vec<_> = columns.iter().map(|c| c.ty.name()).collect();
        let mut candidates = columns.iter().filter(|c| wanted.is_none_or(|w| c.ty.name() == w)).peekable();
        if let (Some(wanted), None) = (wanted, candidates.peek()) {
            return Err(no_such_column(path, &names, wanted));
        }
        let mut reasons = vec![];
        for candidate in candidates {
            match Self::of(*candidate, schema) {
                Ok(column) => return Ok(column),
                Err(reason) => reasons.push((candidate.ty.name(), reason)),
            }
        }
        // A column that comes close deserves its reason; otherwise the list of columns says most.
        let close = reasons.iter().find(|(_, reason)| wanted.is_some() || reason.is_close);
        Err(no_image_column(path, &names, close.map(|(name, reason)| (*name, reason.text.as_str()))))
    }

    fn of(node: Node<'_>, schema: &SchemaDescriptor) -> std::result::Result<Self, Reason> {
        if node.ty.is_primitive() || node.ty.get_basic_info().repetition() == Repetition::REPEATED {
            return Err(Reason::unrelated("it is not a struct"));
        }
        let meta = node
            .child(field::PIXELS_META)
            .filter(|m| m.ty.is_group())
            .ok_or(Reason::unrelated("it has no pixels_meta"))?;
        let mut sizes = vec![];
        for name in field::SIZES.into_iter().chain([field::TYPE]) {
            match meta.child(name).filter(|n| n.ty.is_primitive()) {
                Some(leaf) => sizes.push(leaf.first),
                None if matches!(name, "size_t" | "size_c" | "size_z") => {}
                None => return Err(Reason::close(format!("pixels_meta has no {name}"))),
            }
        }
        if let Some(order) = node.child(field::CHUNK_GRID).and_then(|g| g.child(field::CHUNK_ORDER)) {
            sizes.push(order.first);
        }
        let mut reason = None;
        let pieces = [field::CHUNKS, field::PLANES].map(|name| {
            let list = node.child(name)?;
            match PieceColumn::of(list, name, schema) {
                Ok(found) => Some(found),
                Err(why) => {
                    reason = reason.take().or(Some(why));
                    None
                }
            }
        });
        if pieces.iter().all(Option::is_none) {
            let text = reason.unwrap_or_else(|| "it has neither chunks nor planes".into());
            return Err(Reason::close(text));
        }
        let metadata = node
            .children()
            .iter()
            .filter(|c| ![field::CHUNKS, field::PLANES, field::MASKS].contains(&c.ty.name()))
            .flat_map(|c| c.first..c.first + c.leaves())
            .collect();
        Ok(Self { name: node.ty.name().to_owned(), sizes, metadata, pieces, note: reason })
    }

    /// The variant of OME-Arrow that this is; `filled` says of each list whether it has anything in it.
    pub fn variant(&self, filled: [bool; 2]) -> Variant {
        let there = |source: usize| self.pieces[source].is_some() && filled[source];
        let pieces = match (there(CHUNKS), there(PLANES)) {
            (true, true) => Pieces::Both,
            (false, true) => Pieces::Planes,
            // Where both are empty, what would be read if it were not.
            (false, false) if self.pieces[CHUNKS].is_none() => Pieces::Planes,
            _ => Pieces::Chunks,
        };
        let inferred = self
            .pieces
            .iter()
            .flatten()
            .any(|p| matches!(p.pixels.values, Some(LeafType::I64 | LeafType::U64)));
        Variant { inferred, pieces }
    }
}

impl PieceColumn {
    fn of(list: Node<'_>, name: &str, schema: &SchemaDescriptor) -> std::result::Result<Self, String> {
        let element = list
            .list_element()
            .filter(|e| e.ty.is_group())
            .ok_or_else(|| format!("{name} is not a list of structs"))?;
        let pixels = match element.child(field::PIXELS).and_then(Node::list_element) {
            Some(pixels) if pixels.ty.is_primitive() => pixels,
            Some(_) => return Err(format!("{name}.pixels is not a list of numbers")),
            None if element.child(field::PIXEL_BYTES).is_some() => {
                return Err(format!(
                    "{name} holds packed pixel_bytes (ome-arrow's byte variant), not lists of pixels"
                ));
            }
            None => return Err(format!("{name} has no list of pixels")),
        };
        let descriptor = schema.column(pixels.first);
        if matches!(descriptor.logical_type_ref(), Some(LogicalType::Unknown)) {
            return Err(format!("{name}.pixels has no values"));
        }
        let mut positions = vec![];
        for (wanted, required) in field::ORIGIN
            .iter()
            .chain(&field::CHUNK_SHAPE)
            .map(|wanted| (wanted, name == field::CHUNKS || field::ORIGIN[..3].contains(wanted)))
        {
            match element.child(wanted).filter(|n| n.ty.is_primitive()) {
                Some(leaf) if required => positions.push(leaf.first),
                None if required => return Err(format!("{name} has no {wanted}")),
                _ => {}
            }
        }
        let pixels = PixelLeaf {
            leaf: pixels.first,
            values: LeafType::of(&descriptor),
            max_rep: descriptor.max_rep_level(),
            max_def: descriptor.max_def_level(),
        };
        Ok(Self { positions, pixels })
    }
}

/// Why a column is no image column, and whether it was nearly one.
struct Reason {
    text: String,
    is_close: bool,
}

impl Reason {
    fn unrelated(text: &str) -> Self {
        Self { text: text.into(), is_close: false }
    }

    fn close(text: String) -> Self {
        Self { text, is_close: true }
    }
}

/// A node of the schema tree and the number of the first leaf below it.
#[derive(Clone, Copy)]
struct Node<'a> {
    ty: &'a Type,
    first: usize,
}

impl Node<'_> {
    fn leaves(self) -> usize {
        fn count(ty: &Type) -> usize {
            if ty.is_primitive() { 1 } else { ty.get_fields().iter().map(|f| count(f)).sum() }
        }
        count(self.ty)
    }

    fn children(self) -> Vec<Self> {
        let mut first = self.first;
        if self.ty.is_primitive() {
            return vec![];
        }
        self.ty
            .get_fields()
            .iter()
            .map(|ty| {
                let node = Self { ty, first };
                first += node.leaves();
                node
            })
            .collect()
    }

    fn child(self, name: &str) -> Option<Self> {
        self.children().into_iter().find(|c| c.ty.name() == name)
    }

    /// The element of a list, by the rules for lists of three levels and for older ones of two.
    fn list_element(self) -> Option<Self> {
        let info = self.ty.get_basic_info();
        let is_list = self.ty.is_group()
            && (info.converted_type() == ConvertedType::LIST
                || matches!(info.logical_type_ref(), Some(LogicalType::List)));
        let [repeated] = self.children()[..] else { return None };
        if !is_list || repeated.ty.get_basic_info().repetition() != Repetition::REPEATED {
            return None;
        }
        let tuple = format!("{}_tuple", self.ty.name());
        match repeated.children()[..] {
            [element] if repeated.ty.name() != "array" && repeated.ty.name() != tuple => Some(element),
            _ => Some(repeated),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::schema::parser::parse_message_type;
    use std::sync::Arc;

    fn find(message: &str, wanted: Option<&str>) -> Result<ImageColumn> {
        let schema = SchemaDescriptor::new(Arc::new(parse_message_type(message).unwrap()));
        ImageColumn::find(Path::new("f.parquet"), &schema, wanted)
    }

    const SIZES: &str = "optional group pixels_meta { optional binary type (STRING);
        optional int32 size_x; optional int32 size_y; optional int32 size_z; optional int32 size_c;
        optional int32 size_t; }";

    #[test]
    fn lists_of_any_spelling_are_found() {
        let planes = "optional group planes (LIST) { repeated group list { optional group item {
            optional int64 z; optional int64 t; optional int64 c;
            optional group pixels (LIST) { repeated group list { optional int64 item; } } } } }";
        let two_level = "required group planes (LIST) { repeated group array {
            required int32 z; required int32 t; required int32 c;
            required group pixels (LIST) { repeated float array; } } }";
        let inferred =
            find(&format!("message m {{ optional int64 a; optional group b {{ {SIZES} {planes} }} }}"), None)
                .unwrap();
        assert_eq!(inferred.name, "b");
        assert_eq!(inferred.sizes, [6, 5, 4, 3, 2, 1]);
        let pieces = inferred.pieces[PLANES].as_ref().unwrap();
        assert_eq!(pieces.positions, [8, 9, 7]);
        assert_eq!((pieces.pixels.leaf, pieces.pixels.values), (10, Some(LeafType::I64)));
        assert_eq!((pieces.pixels.max_rep, pieces.pixels.max_def), (2, 7));
        assert_eq!(inferred.variant([true; 2]).to_string(), "inferred 64-bit planes");
        let old =
            find(&format!("message m {{ required group b {{ {SIZES} {two_level} }} }}"), Some("b")).unwrap();
        let pixels = old.pieces[PLANES].as_ref().unwrap().pixels;
        assert_eq!((pixels.leaf, pixels.values, pixels.max_rep), (9, Some(LeafType::F32), 2));
    }

    #[test]
    fn what_is_missing_is_said() {
        let none = find("message m { optional int64 a; optional binary b; }", None).unwrap_err().to_string();
        assert!(none.contains("no image column; its columns are: a, b"), "{none}");
        assert!(none.contains("A table with a row for each cell goes to Dataset.cells"), "{none}");
        let wrong = find("message m { optional int64 a; }", Some("img")).unwrap_err().to_string();
        assert!(wrong.contains("no column \"img\"") && wrong.contains("its columns are: a"), "{wrong}");
        let close = find(&format!("message m {{ optional group b {{ {SIZES} }} }}"), None);
        assert!(close.unwrap_err().to_string().contains("neither chunks nor planes"));
    }
}
