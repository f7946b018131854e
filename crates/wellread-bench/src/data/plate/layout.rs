//! The layouts of generated plates, and the names of their files. How they are read: `wellread_store::sites`.

use super::wells::Site;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// The software whose files a generated plate has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlateLayout {
    /// Opera Phenix, as Harmony exports it: a file for each channel, `Index.xml`.
    #[default]
    Harmony,
    /// ImageXpress: a file for each channel.
    #[serde(rename = "imagexpress")]
    ImageXpress,
    /// CellProfiler: `load_data.csv` names the files.
    LoadData,
    /// OME-Zarr plate (HCS).
    HcsZarr,
}

impl PlateLayout {
    /// All layouts.
    pub const ALL: [Self; 4] = [Self::Harmony, Self::ImageXpress, Self::LoadData, Self::HcsZarr];

    /// As in `--layout`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Harmony => "harmony",
            Self::ImageXpress => "imagexpress",
            Self::LoadData => "load-data",
            Self::HcsZarr => "hcs-zarr",
        }
    }

    /// Channels that its names can tell apart.
    pub(super) const fn most_channels(self) -> usize {
        match self {
            Self::ImageXpress => 8,
            Self::Harmony | Self::LoadData | Self::HcsZarr => 99,
        }
    }

    /// Number of a field: microscopes count from 1, OME-Zarr from 0.
    pub(super) const fn site_number(self, field: usize) -> usize {
        match self {
            Self::HcsZarr => field,
            Self::Harmony | Self::ImageXpress | Self::LoadData => field + 1,
        }
    }

    /// The beginning of the names of a site's files; for OME-Zarr its place in the plate.
    pub(super) fn stem(self, plate: &str, site: Site) -> String {
        let Site { well, field } = site;
        let number = self.site_number(field);
        match self {
            Self::Harmony => format!("r{:02}c{:02}f{number:02}", well.row + 1, well.column + 1),
            Self::ImageXpress | Self::LoadData => format!("{plate}_{}_s{number}", well.name()),
            Self::HcsZarr => format!("{}/{}/{number}", well.letters(), well.column + 1),
        }
    }

    /// Name of the file of a channel.
    pub(super) fn file(self, plate: &str, site: Site, channel: usize, channel_name: &str) -> String {
        let stem = self.stem(plate, site);
        match self {
            Self::Harmony => format!("{stem}p01-ch{}sk1fk1fl1.tiff", channel + 1),
            Self::ImageXpress => format!("{stem}_w{}.tif", channel + 1),
            Self::LoadData => format!("{stem}_{channel_name}.tiff"),
            Self::HcsZarr => stem,
        }
    }
}

impl fmt::Display for PlateLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PlateLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Readers call the layout of such a table by its program.
        let name = if text == "cellprofiler" { Self::LoadData.name() } else { text };
        Self::ALL.into_iter().find(|layout| layout.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{text:?} is no layout of a generated plate; there are {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::wells::Well;
    use super::*;

    #[test]
    fn files_are_called_as_microscopes_call_them() {
        let site = Site { well: Well { row: 1, column: 2 }, field: 3 };
        let file = |layout: PlateLayout| layout.file("P1", site, 1, "ER");
        assert_eq!(
            PlateLayout::ALL.map(file),
            ["r02c03f04p01-ch2sk1fk1fl1.tiff", "P1_B03_s4_w2.tif", "P1_B03_s4_ER.tiff", "B/3/3"]
        );
        for layout in PlateLayout::ALL {
            assert_eq!(layout.name().parse(), Ok(layout));
        }
        assert_eq!("cellprofiler".parse(), Ok(PlateLayout::LoadData));
        assert!("incell".parse::<PlateLayout>().unwrap_err().contains("harmony, imagexpress"));
    }
}
