//! Which fields of columns are asked for, as a tree: paths of names are looked up in it level by level.

/// Which fields are wanted below a column.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    all: bool,
    fields: Vec<(String, Wanted)>,
}

/// Nothing below a column.
static NOTHING: Wanted = Wanted { all: false, fields: vec![] };

/// Everything below a column.
pub(crate) static ALL: Wanted = Wanted { all: true, fields: vec![] };

impl Wanted {
    /// What lies at or below any of the paths.
    pub fn of(paths: &[Vec<String>]) -> Self {
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

    /// What is wanted of a field.
    pub fn field(&self, name: &str) -> Option<&Self> {
        if self.all {
            return Some(&ALL);
        }
        self.fields.iter().find(|(n, _)| n == name).map(|(_, wanted)| wanted)
    }

    /// What is wanted at the end of a path of fields; nothing else is there.
    pub fn below(&self, path: &[String]) -> &Self {
        path.iter().fold(self, |at, name| at.field(name).unwrap_or(&NOTHING))
    }
}
