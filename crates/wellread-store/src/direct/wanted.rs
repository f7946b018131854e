//! Which fields of columns are asked for, as a tree: paths of names are looked up in it level by level.

use crate::table::Columns;

/// Which fields are wanted below a column.
#[derive(Debug, Default)]
pub struct WantedFields {
    all: bool,
    fields: Vec<(String, WantedFields)>,
}

/// Nothing below a column.
static NOTHING: WantedFields = WantedFields { all: false, fields: vec![] };

/// Everything below a column.
pub static ALL: WantedFields = WantedFields { all: true, fields: vec![] };

impl WantedFields {
    /// The fields at or below any of the paths.
    pub fn of(paths: &Columns) -> Self {
        let mut root = Self::default();
        for path in paths {
            let mut at = &mut root;
            for name in path {
                let i = at.fields.iter().position(|(n, _)| n == name).unwrap_or_else(|| {
                    at.fields.push((name.clone(), Self::default()));
                    at.fields.len() - 1
                });
                at = &mut at.fields[i].1;
            }
            at.all = true;
        }
        root
    }

    /// Whether everything below a column is wanted.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// The wanted part of a field.
    pub fn field(&self, name: &str) -> Option<&Self> {
        if self.all {
            return Some(&ALL);
        }
        self.fields.iter().find(|(n, _)| n == name).map(|(_, wanted)| wanted)
    }

    /// The wanted part at the end of a path of fields; nothing else is there.
    pub fn below(&self, path: &[String]) -> &Self {
        path.iter().fold(self, |at, name| at.field(name).unwrap_or(&NOTHING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_level_by_level() {
        let path = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let wanted = WantedFields::of(&[path(&["a", "b"]), path(&["a", "b", "c"]), path(&["d"])]);
        let a = wanted.field("a").unwrap();
        assert!(!wanted.is_all() && !a.is_all() && a.field("c").is_none());
        // All of it, and a part of that.
        assert!(a.field("b").unwrap().is_all());
        assert!(wanted.below(&path(&["a", "b", "x", "y"])).is_all());
        assert!(wanted.below(&path(&["e"])).field("b").is_none());
    }
}
