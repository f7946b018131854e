//! The list of layouts that are recognised by the names of files.

use super::layout::Layout;

/// All layouts that are recognised by names, in this order. One line per layout.
pub(super) static LAYOUTS: &[&Layout] = &[
    &super::harmony::LAYOUT,
    &super::imagexpress::LAYOUT,
    &super::cellvoyager::LAYOUT,
    &super::cv1000::LAYOUT,
    &super::columbus::LAYOUT,
    &super::incell::LAYOUT,
    &super::cellomics::LAYOUT,
];

#[cfg(test)]
mod tests {
    use super::super::layout::Role;
    use super::super::pattern::Pattern;
    use super::*;

    #[test]
    fn every_layout_is_whole() {
        for (i, layout) in LAYOUTS.iter().enumerate() {
            assert!(LAYOUTS[..i].iter().all(|other| other.name != layout.name), "{} twice", layout.name);
            assert!(!layout.about.is_empty() && !layout.patterns.is_empty(), "{}", layout.name);
            for text in layout.patterns {
                let pattern = Pattern::parse(text).unwrap_or_else(|why| panic!("{text}: {why}"));
                let roles: Vec<Role> = pattern.fields().map(Role::of).collect();
                assert!(roles.iter().any(|role| role.is_axis()), "{text} has no axis");
                let has = |role| roles.contains(&role);
                let has_well = has(Role::Well) || has(Role::Row) && has(Role::Column);
                assert!(
                    has_well || has(Role::Plate) && has(Role::Site),
                    "{text} has neither wells nor sites"
                );
            }
        }
    }
}
