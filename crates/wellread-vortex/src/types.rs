//! The types of columns in both releases of Arrow: the library's, and this workspace's, in which rows are handed on.

use crate::session::Cause;
use arrow_schema::{DataType, Field};
use std::sync::{Arc, LazyLock};
use wellread_store::direct::WantedFields;
use wellread_store::table::arrow_schema as ours;

/// A field of a type, and those below it.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    /// As rows are handed on.
    pub field: Arc<ours::Field>,
    /// As the library knows it.
    pub theirs: Arc<Field>,
    /// The element of a list, the fields of a struct.
    pub below: Vec<Type>,
}

/// Truth values, as which of a struct's rows are there.
pub(crate) static MASK: LazyLock<Type> = LazyLock::new(|| Type {
    field: Arc::new(ours::Field::new("", ours::DataType::Boolean, false)),
    theirs: Arc::new(Field::new("", DataType::Boolean, false)),
    below: vec![],
});

impl Type {
    /// A table of columns, as the struct that it is.
    ///
    /// # Errors
    /// Columns that differ between the two schemas.
    pub fn of_table(theirs: &arrow_schema::Schema, table: &ours::Schema) -> Result<Self, Cause> {
        let theirs = Field::new("", DataType::Struct(theirs.fields().clone()), false);
        let table = ours::Field::new("", ours::DataType::Struct(table.fields().clone()), false);
        Self::new(Arc::new(table), Arc::new(theirs))
    }

    fn new(field: Arc<ours::Field>, theirs: Arc<Field>) -> Result<Self, Cause> {
        let below = match (field.data_type(), theirs.data_type()) {
            (ours::DataType::List(element), DataType::List(other)) => {
                vec![Self::new(Arc::clone(element), Arc::clone(other))?]
            }
            (ours::DataType::Struct(fields), DataType::Struct(others)) if fields.len() == others.len() => {
                let pairs = fields.iter().zip(others);
                pairs
                    .map(|(f, other)| Self::new(Arc::clone(f), Arc::clone(other)))
                    .collect::<Result<_, _>>()?
            }
            (ours::DataType::List(_) | ours::DataType::Struct(_), _) => {
                return Err(format!("the type {} is another one in this release", theirs.data_type()).into());
            }
            _ => vec![],
        };
        Ok(Self { field, theirs, below })
    }

    /// The type without the fields that are not wanted.
    pub fn only(&self, wanted: &WantedFields) -> Self {
        let (data_type, below) = match self.field.data_type() {
            ours::DataType::List(_) => {
                let below: Vec<_> = self.below.iter().map(|element| element.only(wanted)).collect();
                let element = below.first().map(|element| Arc::clone(&element.field));
                (element.map(ours::DataType::List), below)
            }
            ours::DataType::Struct(_) => {
                let fields = self.below.iter();
                let below: Vec<_> =
                    fields.filter_map(|below| Some(below.only(wanted.field(below.field.name())?))).collect();
                let fields = below.iter().map(|below| Arc::clone(&below.field)).collect();
                (Some(ours::DataType::Struct(fields)), below)
            }
            _ => return self.clone(),
        };
        let field = self.field.as_ref().clone();
        let field = match data_type {
            Some(data_type) => field.with_data_type(data_type),
            None => field,
        };
        Self { field: Arc::new(field), theirs: Arc::clone(&self.theirs), below }
    }

    /// Whether a path of field names exists below it, through structs and lists.
    pub fn has_path(&self, path: &[String]) -> bool {
        let Some((name, rest)) = path.split_first() else { return true };
        match self.field.data_type() {
            ours::DataType::List(_) => self.below.iter().any(|element| element.has_path(path)),
            ours::DataType::Struct(_) => {
                let mut fields = self.below.iter();
                fields.find(|f| f.field.name() == name).is_some_and(|f| f.has_path(rest))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_are_not_wanted_are_left_out() {
        let number = || Arc::new(Field::new("x", DataType::Int32, true));
        let pixels =
            Field::new("pixels", DataType::List(Arc::new(Field::new("item", DataType::UInt8, true))), true);
        let chunk = DataType::Struct(vec![number(), Arc::new(pixels)].into());
        let chunks = Field::new("chunks", DataType::List(Arc::new(Field::new("item", chunk, true))), true);
        let image = Field::new("image", DataType::Struct(vec![Arc::new(chunks), number()].into()), true);
        let theirs = arrow_schema::Schema::new(vec![image, Field::new("label", DataType::Utf8, true)]);
        let table = Type::of_table(&theirs, &crate::bridge::import_schema(&theirs).unwrap()).unwrap();

        let path = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        assert!(table.has_path(&path(&["image", "chunks", "pixels"])));
        assert!(!table.has_path(&path(&["image", "chunks", "pixels", "x"])));
        assert!(!table.has_path(&path(&["image", "planes"])));

        let only = table.only(&WantedFields::of(&[path(&["image", "chunks", "pixels"])]));
        let ours::DataType::Struct(columns) = only.field.data_type() else { panic!("{:?}", only.field) };
        assert_eq!(columns.len(), 1);
        let shown = format!("{}", columns[0].data_type());
        assert!(shown.contains("pixels") && !shown.contains("\"x\"") && !shown.contains("x:"), "{shown}");
        assert_eq!(only.below[0].below[0].below[0].below.len(), 1, "the pixels of a chunk");
    }
}
