//! Which columns can be read here, and how they are made up.

use super::blocks::Blocks;
use super::layout::{Bounds, Column, Layout, Path, nulls_of};
use super::pieces::PieceLeaves;
use super::reader::Direct;
use super::tree::Node;
use crate::connection::Borrowed;
use crate::sql::quoted;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use std::sync::Arc;
use wellread_image::ome_arrow::field;
use wellread_store::direct::{WantedFields, rows_of_a_batch};
use wellread_store::table::Columns;

/// A table whose rows, numbered from 0 in the order of the file, none of them deleted, may be read here.
pub(crate) struct Source<'a> {
    pub blocks: &'a Arc<Blocks>,
    pub connection: &'a Borrowed<'a>,
    /// The table as SQL.
    pub table: &'a str,
    pub rows: usize,
    pub schema: &'a Schema,
    pub layout: &'a Layout,
}

/// A node while its columns are not known yet.
enum UnresolvedNode {
    Leaf(Path),
    Struct(Path, Vec<UnresolvedNode>),
    List(Path, Box<UnresolvedNode>),
}

impl Direct {
    /// The `columns` of a table. `None` where one of them cannot be read here.
    pub fn new(source: &Source<'_>, columns: &Columns) -> Option<Self> {
        let mut drafts: Vec<(UnresolvedNode, FieldRef, Path)> = vec![];
        let wanted = WantedFields::of(columns);
        for (number, column) in source.schema.fields().iter().enumerate() {
            let Some(wanted) = wanted.field(column.name()) else { continue };
            // Whole columns have text in them; and a null image is told by the struct that every image has.
            let DataType::Struct(fields) = column.data_type() else { return None };
            let meta = fields.iter().position(|f| f.name() == field::PIXELS_META)?;
            let (draft, kept) = draft(column, vec![number], wanted, false)?;
            drafts.push((draft, kept, vec![number, meta + 1]));
        }
        let mut paths = vec![];
        for (draft, _, told_by) in &drafts {
            draft.paths(&mut paths);
            paths.push(told_by.clone());
        }
        let layout = source.layout;
        if !layout.is_settled(&paths) {
            return None;
        }
        let rows = layout.counts(&nulls_of(&drafts.first()?.2))?;
        let mut starts = vec![0usize];
        for rows in &rows {
            starts.push(starts.last()?.checked_add(*rows)?);
        }
        // Rows that were deleted are still in their row groups.
        if starts.last() != Some(&source.rows) || source.rows == 0 {
            return None;
        }
        let mut builder = Builder { source, layout, rows, leaves: vec![] };
        let mut tree = vec![];
        let mut fields = vec![];
        for (draft, kept, told_by) in drafts {
            let name = quoted(kept.name());
            let valid = builder.valid(&told_by, &format!("{name}.{}", quoted(field::PIXELS_META)))?;
            let (node, kept) = builder.node(&draft, &kept, Some(&name), false)?;
            tree.push((node, valid));
            fields.push(kept);
        }
        let Builder { leaves, .. } = builder;
        let bytes = leaves.iter().map(|leaf| leaf.total().saturating_mul(leaf.width.delivered));
        let bytes = bytes.fold(0, usize::saturating_add);
        let batch_rows = rows_of_a_batch(bytes, source.rows);
        let schema = Arc::new(Schema::new(fields));
        // The caller for pieces knows which images are null.
        let (tree, valid): (Vec<_>, Vec<_>) = tree.into_iter().unzip();
        let pieces = PieceLeaves::new(columns, &tree, &schema);
        let blocks = Arc::clone(source.blocks);
        Some(Self { blocks, schema, tree, valid, leaves, pieces, starts, batch_rows })
    }
}

/// The part of a field that is `wanted`.
fn draft(
    of: &FieldRef,
    at: Path,
    wanted: &WantedFields,
    in_list: bool,
) -> Option<(UnresolvedNode, FieldRef)> {
    let retyped = |data_type| Arc::new(Field::clone(of).with_data_type(data_type));
    match of.data_type() {
        // Where a struct is asked for, and not its fields, it may be null on its own.
        DataType::Struct(_) if wanted.is_all() && !in_list => None,
        DataType::Struct(fields) => {
            let mut drafts = vec![];
            let mut kept = vec![];
            for (i, inner) in fields.iter().enumerate() {
                let Some(wanted) = wanted.field(inner.name()) else { continue };
                let (draft, inner) = draft(inner, [&*at, &[i + 1]].concat(), wanted, in_list)?;
                drafts.push(draft);
                kept.push(inner);
            }
            let kept: Fields = kept.into();
            (!kept.is_empty()).then(|| (UnresolvedNode::Struct(at, drafts), retyped(DataType::Struct(kept))))
        }
        DataType::List(element) => {
            let (inner, element) = draft(element, [&*at, &[1]].concat(), wanted, true)?;
            Some((UnresolvedNode::List(at, Box::new(inner)), retyped(DataType::List(element))))
        }
        // Names beyond a leaf lead nowhere.
        leaf if wanted.is_all() && kind(leaf).is_some() => Some((UnresolvedNode::Leaf(at), Arc::clone(of))),
        _ => None,
    }
}

impl UnresolvedNode {
    fn paths(&self, out: &mut Vec<Path>) {
        match self {
            Self::Leaf(path) => out.push(path.clone()),
            Self::Struct(path, children) => {
                out.push(path.clone());
                for child in children {
                    child.paths(out);
                }
            }
            Self::List(path, element) => {
                out.push(path.clone());
                element.paths(out);
            }
        }
    }
}

struct Builder<'a> {
    source: &'a Source<'a>,
    layout: &'a Layout,
    /// Rows of each row group.
    rows: Vec<usize>,
    leaves: Vec<Column>,
}

impl Builder<'_> {
    /// The node of a draft, and its field as it is delivered. `name` is the column as SQL, outside of lists;
    /// `is_element` says that it is what a list has, and not a field.
    fn node(
        &mut self,
        draft: &UnresolvedNode,
        field: &FieldRef,
        name: Option<&str>,
        is_element: bool,
    ) -> Option<(Node, FieldRef)> {
        let retyped = |data_type| Arc::new(Field::clone(field).with_data_type(data_type));
        match (draft, field.data_type()) {
            (UnresolvedNode::Leaf(path), data_type) => {
                let valid = self.checked(path, name)?;
                let (kind, size) = kind(data_type)?;
                let mut column = self.layout.column(path, kind, size, self.source.blocks)?;
                let mut delivered = data_type.clone();
                let narrows = is_element && matches!(data_type, DataType::Int64 | DataType::UInt64);
                if narrows && let Some(bytes) = self.layout.bounds(path).and_then(Bounds::bytes) {
                    column.width.delivered = bytes;
                    delivered = if bytes == 1 { DataType::UInt8 } else { DataType::UInt16 };
                }
                self.leaves.push(column);
                Some((Node::Leaf { leaf: self.leaves.len() - 1, valid }, retyped(delivered)))
            }
            (UnresolvedNode::Struct(path, drafts), DataType::Struct(fields)) => {
                if name.is_none() && self.layout.has_nulls(path) {
                    return None;
                }
                let children = drafts.iter().zip(fields).map(|(draft, field)| {
                    let name = name.map(|name| format!("{name}.{}", quoted(field.name())));
                    self.node(draft, field, name.as_deref(), false)
                });
                let (nodes, fields): (Vec<_>, Vec<_>) =
                    children.collect::<Option<Vec<_>>>()?.into_iter().unzip();
                Some((Node::Struct(nodes), retyped(DataType::Struct(fields.into()))))
            }
            (UnresolvedNode::List(path, draft), DataType::List(element)) => {
                let has_nulls = self.layout.has_nulls(path);
                if has_nulls && name.is_none() || name.is_some() && self.layout.counts(path)? != self.rows {
                    return None;
                }
                let ends = self.layout.column(path, "LIST", size_of::<u64>(), self.source.blocks)?;
                let (node, element) = self.node(draft, element, None, true)?;
                Some((
                    Node::List { ends, has_nulls, element: Box::new(node) },
                    retyped(DataType::List(element)),
                ))
            }
            _ => None,
        }
    }

    /// Which values of a leaf are not null, where any is: outside of lists only. `None` where it cannot be
    /// read.
    #[expect(clippy::option_option, reason = "nothing to read, and nothing that is null")]
    fn checked(&self, path: &[usize], name: Option<&str>) -> Option<Option<BooleanBuffer>> {
        match name {
            None => (!self.layout.has_nulls(path)).then_some(None),
            Some(_) if self.layout.counts(path)? != self.rows => None,
            Some(name) => self.valid(path, name),
        }
    }

    /// Which rows are not null in the column that is `name` in SQL, where any is.
    #[expect(clippy::option_option, reason = "nothing to read, and nothing that is null")]
    fn valid(&self, path: &[usize], name: &str) -> Option<Option<BooleanBuffer>> {
        if !self.layout.has_nulls(path) {
            return Some(None);
        }
        let sql = format!("SELECT rowid FROM {} WHERE {name} IS NULL", self.source.table);
        let mut statement = self.source.connection.prepare(&sql).ok()?;
        let mut valid = BooleanBufferBuilder::new(self.source.rows);
        valid.append_n(self.source.rows, true);
        for batch in statement.stream_arrow([]).ok()? {
            for row in batch.ok()?.column(0).as_primitive_opt::<Int64Type>()?.values() {
                let row = usize::try_from(*row).ok().filter(|row| *row < self.source.rows)?;
                valid.set_bit(row, false);
            }
        }
        Some(Some(valid.finish()))
    }
}

/// DuckDB's name of a type, and bytes of a value.
fn kind(of: &DataType) -> Option<(&'static str, usize)> {
    Some(match of {
        DataType::Int8 => ("TINYINT", 1),
        DataType::Int16 => ("SMALLINT", 2),
        DataType::Int32 => ("INTEGER", 4),
        DataType::Int64 => ("BIGINT", 8),
        DataType::UInt8 => ("UTINYINT", 1),
        DataType::UInt16 => ("USMALLINT", 2),
        DataType::UInt32 => ("UINTEGER", 4),
        DataType::UInt64 => ("UBIGINT", 8),
        DataType::Float32 => ("FLOAT", 4),
        DataType::Float64 => ("DOUBLE", 8),
        _ => return None,
    })
}
