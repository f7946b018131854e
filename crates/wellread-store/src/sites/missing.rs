//! Sites that lack planes: the note about them, and those that are left out.

use super::group::{Grouped, NO_FILE};
use crate::format::Missing;
use crate::surface::option_as;
use crate::words::counted;

/// Most sites that are named.
const NAMED: usize = 5;

/// The message about a pattern that leaves no site whole.
const DOUBT: &str = "the pattern leaves no site whole, and may divide names otherwise than is meant ({site:d} fits digits \
                     alone, {channel:a} letters)";

/// The sites of a set that are not all there.
#[derive(Debug, Default)]
pub(super) struct Incomplete {
    /// How many, of how many sites.
    pub count: usize,
    pub sites: usize,
    /// Planes that they lack together.
    pub planes: usize,
    /// The planes that the first few lack.
    pub first: Vec<String>,
}

impl Incomplete {
    /// Looks at all sites.
    pub fn of(grouped: &Grouped) -> Self {
        let each = grouped.planes_of_site().max(1);
        let mut found = Self { sites: grouped.names.len(), ..Self::default() };
        for (name, planes) in grouped.names.iter().zip(grouped.planes.chunks(each)) {
            let lacks = planes.iter().filter(|&&file| file == NO_FILE).count();
            if lacks > 0 {
                (found.count, found.planes) = (found.count + 1, found.planes + lacks);
                if found.first.len() < NAMED {
                    found.first.push(format!("{name} has no {}", lacking(grouped, planes)));
                }
            }
        }
        found
    }

    /// The doubt about a pattern that leaves none of several sites whole. The layout of a pattern is that pattern in quotes.
    pub fn doubt(&self, layout: &str) -> Option<&'static str> {
        (layout.starts_with('"') && self.sites > 1 && self.count == self.sites).then_some(DOUBT)
    }

    /// In a sentence; `None` where all sites are whole.
    pub fn sentence(&self, missing: Missing) -> Option<String> {
        let what = match missing {
            Missing::Error => format!("({})", option_as("missing", "skip|zero")),
            Missing::Skip => "(left out)".to_owned(),
            Missing::Zero => "(read as 0)".to_owned(),
        };
        let more = if self.count > self.first.len() { "; …" } else { "" };
        (self.count > 0).then(|| {
            format!(
                "{} of {} {} files: {}{more} {what}",
                counted(self.count, "site"),
                self.sites,
                if self.count == 1 { "lacks" } else { "lack" },
                self.first.join("; ")
            )
        })
    }
}

/// The planes that a site lacks: whole channels by name, else planes.
pub(super) fn lacking(grouped: &Grouped, planes: &[u32]) -> String {
    let [nt, nc, nz] = [0, 1, 2].map(|axis| grouped.axes[axis].len());
    let missing = |t: usize, c: usize, z: usize| planes.get((t * nc + c) * nz + z) == Some(&NO_FILE);
    let of_channel = |c: usize| {
        (0..nt).flat_map(move |t| (0..nz).map(move |z| (t, z))).filter(move |&(t, z)| missing(t, c, z))
    };
    let called = |c: usize| match grouped.channels.get(c) {
        Some(name) => name.clone(),
        None => "file".to_owned(),
    };
    let whole: Vec<usize> = (0..nc).filter(|&c| of_channel(c).count() == nt * nz).collect();
    let all = planes.iter().filter(|&&file| file == NO_FILE).count();
    if !whole.is_empty() && whole.len() * nt * nz == all {
        return whole.into_iter().map(called).collect::<Vec<_>>().join(", ");
    }
    let first = (0..nc).find_map(|c| of_channel(c).next().map(|(t, z)| (t, c, z)));
    let Some((t, c, z)) = first else { return String::new() };
    let of = |axis: usize, at: usize, word: &str| match grouped.axes[axis].as_slice() {
        [_] => String::new(),
        values => format!(" {word} {}", values[at]),
    };
    let more =
        if all > 1 { format!(" and {} more of {} planes", all - 1, planes.len()) } else { String::new() };
    format!("{}{}{}{more}", called(c), of(0, t, "time"), of(2, z, "z"))
}

/// The places of the sites that have all their planes.
pub(super) fn whole_sites(grouped: &Grouped) -> Vec<usize> {
    let each = grouped.planes_of_site().max(1);
    let sites = grouped.planes.chunks(each).enumerate();
    sites.filter(|(_, planes)| !planes.contains(&NO_FILE)).map(|(site, _)| site).collect()
}

/// These sites only.
pub(super) fn only(grouped: Grouped, sites: &[usize]) -> Grouped {
    let each = grouped.planes_of_site();
    Grouped {
        names: sites.iter().map(|&site| grouped.names[site].clone()).collect(),
        planes: sites
            .iter()
            .flat_map(|&site| &grouped.planes[site * each..(site + 1) * each])
            .copied()
            .collect(),
        columns: grouped.columns.iter().map(|column| column.of(sites)).collect(),
        ..grouped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(planes: Vec<u32>, z: &[&str]) -> Grouped {
        let values = |all: &[&str]| all.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
        let axes = [values(&[""]), values(&["1", "3"]), values(z)];
        let names = (0..planes.len() / (2 * z.len())).map(|site| format!("s{site}")).collect();
        Grouped { names, axes, channels: values(&["ch1", "ch3"]), planes, ..Grouped::default() }
    }

    #[test]
    fn what_is_missing_is_said() {
        let whole = grouped(vec![0, 1, 2, 3], &[""]);
        assert_eq!(Incomplete::of(&whole).sentence(Missing::Error), None);
        let one = grouped(vec![0, 1, 2, NO_FILE], &[""]);
        assert_eq!(
            Incomplete::of(&one).sentence(Missing::Error).as_deref(),
            Some("1 site of 2 lacks files: s1 has no ch3 (missing skip|zero)")
        );
        assert_eq!(whole_sites(&one), [0]);
        let planes = grouped(vec![0, 1, NO_FILE, NO_FILE, 4, 5, NO_FILE, 6], &["1", "2"]);
        assert_eq!(
            Incomplete::of(&planes).sentence(Missing::Skip).as_deref(),
            Some("2 sites of 2 lack files: s0 has no ch3; s1 has no ch3 z 1 (left out)")
        );
        assert_eq!(Incomplete::of(&planes).planes, 3);
        let several = grouped(vec![NO_FILE, 1, NO_FILE, 2], &["1", "2"]);
        assert_eq!(lacking(&several, &several.planes), "ch1 z 1 and 1 more of 4 planes");
        let left = only(one, &[0]);
        assert_eq!((left.names, left.planes), (vec!["s0".to_owned()], vec![0, 1]));
    }
}
