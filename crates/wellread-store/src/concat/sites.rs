//! The things that sites of the parts lack, where some parts have sites.

use super::store::Concat;
use crate::hints::{RowHints, SiteSummary, SiteTable};
use crate::{Result, Store};
use std::path::PathBuf;

impl SiteTable for Concat {
    fn summary(&self) -> SiteSummary {
        let mut all = SiteSummary::default();
        let mut layouts: Vec<String> = vec![];
        for part in self.parts() {
            let Some(sites) = part.store.hints().sites else { continue };
            let one = sites.summary();
            let in_part = |names: &[String]| -> Vec<String> {
                names.iter().map(|name| format!("{}/{name}", part.name)).collect()
            };
            if !layouts.contains(&one.layout) {
                layouts.push(one.layout);
            }
            if all.channels.is_empty() {
                all.channels = one.channels;
            }
            all.files_per_site = all.files_per_site.max(one.files_per_site);
            all.missing.extend(one.missing.into_iter().map(|what| format!("{}: {what}", part.name)));
            all.incomplete += one.incomplete;
            all.planes_missing += one.planes_missing;
            all.left_out += one.left_out;
            all.left_out_first.extend(in_part(&one.left_out_first));
            all.unmatched += one.unmatched;
            all.unmatched_first.extend(in_part(&one.unmatched_first));
            all.unnamed += one.unnamed;
            all.unnamed_first.extend(in_part(&one.unnamed_first));
        }
        for first in [&mut all.left_out_first, &mut all.unmatched_first, &mut all.unnamed_first] {
            first.truncate(SiteSummary::NAMED);
        }
        all.layout = layouts.join(", ");
        all
    }

    fn complete(&self, row: usize) -> Result<()> {
        let (part, own) = self.locate(row)?;
        let sites = self.parts()[part].store.hints().sites;
        sites.map_or(Ok(()), |sites| sites.complete(own)).map_err(|e| e.of_row(row))
    }

    fn look_into(&self, row: usize) -> Result<()> {
        let (part, own) = self.locate(row)?;
        self.parts()[part].store.hints().look_into(own).map_err(|e| e.of_row(row))
    }

    fn files_of_rows(&self) -> Vec<Vec<PathBuf>> {
        let of_part = |store: &dyn Store| {
            if let Some(sites) = store.hints().sites {
                return sites.files_of_rows();
            }
            let file = |row| store.row_hints(row).ok().and_then(RowHints::file);
            (0..store.len()).map(|row| file(row).into_iter().collect()).collect()
        };
        self.parts().iter().flat_map(|part| of_part(&*part.store)).collect()
    }
}
