//! Sites that lack planes: the note about them, and those that are left out.

use super::group::{Grouped, NO_FILE};
use crate::format::Missing;
use crate::hints::SiteSummary;
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
    /// The names of the first few.
    pub names: Vec<String>,
    /// The planes that these lack.
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
                    found.names.push(name.clone());
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

impl SiteSummary {
    /// Sentences about the sites and the files that opening left out, as was asked for. The set has `images` all the same.
    pub fn left_out_in_words(&self, images: usize) -> Vec<String> {
        let named = |count: usize, first: &[String]| {
            let more = if count > first.len() { " …" } else { "" };
            format!("{}{more}", first.join(", "))
        };
        let their = |count: usize| if count == 1 { "its" } else { "their" };
        let sites = (self.left_out > 0).then(|| {
            format!(
                "{} of {} left out: {} ({} files are missing; {})",
                self.left_out,
                counted(images + self.left_out, "site"),
                named(self.left_out, &self.left_out_first),
                their(self.left_out),
                option_as("missing", "skip")
            )
        });
        let files = (self.unmatched > 0).then(|| {
            let fit = if self.unmatched == 1 { "name does" } else { "names do" };
            format!(
                "{} left out: {} ({} {fit} not fit {}; {})",
                counted(self.unmatched, "file"),
                named(self.unmatched, &self.unmatched_first),
                their(self.unmatched),
                self.layout,
                option_as("unmatched", "skip")
            )
        });
        sites.into_iter().chain(files).collect()
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
    fn what_is_left_out_is_counted_and_named() {
        let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert!(SiteSummary::default().left_out_in_words(3).is_empty());
        let one = SiteSummary { left_out: 1, left_out_first: named(&["A02"]), ..SiteSummary::default() };
        assert_eq!(
            one.left_out_in_words(2),
            ["1 of 3 sites left out: A02 (its files are missing; missing skip)"]
        );
        let many = SiteSummary {
            layout: "harmony".to_owned(),
            left_out: 12,
            left_out_first: named(&["A02", "A03"]),
            unmatched: 1,
            unmatched_first: named(&["notes.tif"]),
            ..SiteSummary::default()
        };
        let sites = "12 of 24 sites left out: A02, A03 … (their files are missing; missing skip)";
        let files = "1 file left out: notes.tif (its name does not fit harmony; unmatched skip)";
        assert_eq!(many.left_out_in_words(12), [sites, files]);
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
