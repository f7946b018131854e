//! Whether the columns of a read are pieces of images: numbers of the structs in one list, chunks or planes, and the pixels of
//! each. [`super::piece_reader`] then reads them without arrays.

use super::layout::Column;
use super::tree::Node;
use arrow_schema::{DataType, Schema};
use wellread_store::direct::PieceColumns;
use wellread_store::table::{Columns, Numbers};

/// How pieces are made up.
#[derive(Debug)]
pub(super) struct PieceLeaves {
    /// Leaves and types of the numbers.
    pub numbers: Box<[(usize, DataType)]>,
    /// Which of the structs' nodes is the list of pixels.
    pub list: usize,
    /// Leaf and type of the pixels.
    pub pixels: (usize, DataType),
}

/// The parts of the nodes of pieces: the ends of the lists of pieces, and their fields.
pub(super) fn fields(tree: &[Node]) -> Option<(&Column, &[Node])> {
    let [Node::Struct(image)] = tree else { return None };
    let [Node::List { ends, element, .. }] = image.as_slice() else { return None };
    let Node::Struct(fields) = &**element else { return None };
    Some((ends, fields))
}

impl PieceLeaves {
    /// `None` where `columns` are something else, or not all that the tree has; `schema` is its types.
    pub fn new(columns: &Columns, tree: &[Node], schema: &Schema) -> Option<Self> {
        let asked = PieceColumns::of(columns)?;
        let (_, nodes) = fields(tree)?;
        let [image] = schema.fields().as_ref() else { return None };
        let DataType::Struct(lists) = image.data_type() else { return None };
        let [list] = lists.as_ref() else { return None };
        let DataType::List(element) = list.data_type() else { return None };
        let DataType::Struct(types) = element.data_type() else { return None };
        if asked.list != [image.name().as_str(), list.name().as_str()] {
            return None;
        }
        let number = |name: &&str| {
            let (at, field) = types.find(name)?;
            let Node::Leaf { leaf, valid: None } = nodes.get(at)? else { return None };
            Numbers::are_whole(field.data_type()).then(|| (*leaf, field.data_type().clone()))
        };
        let (at, field) = types.find(asked.pixels)?;
        let Node::List { element, .. } = nodes.get(at)? else { return None };
        let (Node::Leaf { leaf, valid: None }, DataType::List(of)) = (&**element, field.data_type()) else {
            return None;
        };
        let pixels = (*leaf, of.data_type().clone());
        let numbers = asked.numbers.iter().map(number).collect::<Option<Box<[_]>>>()?;
        (numbers.len() + 1 == nodes.len()).then_some(Self { numbers, list: at, pixels })
    }
}
