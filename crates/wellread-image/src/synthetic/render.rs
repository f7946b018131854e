//! The light that leaves the cells, before the microscope.
//!
//! [`Geometry::draw`] finds for every pixel of one (t, z) its cell, and its depth inside the cell and its
//! nucleus. [`Geometry::shade`] turns that into light, one stain at a time. Textures are fixed to the cell,
//! so they move with it.

use super::outline::DiamondAngle;
use super::scene::{Cell, Phase, Scene, Speck};

/// The five stains of Cell Painting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stain {
    /// Hoechst: chromatin.
    Dna,
    /// Concanavalin A: endoplasmic reticulum.
    Er,
    /// SYTO 14: RNA, hence cytoplasm and nucleoli.
    Rna,
    /// Phalloidin and wheat germ agglutinin: actin, Golgi, plasma membrane.
    Agp,
    /// `MitoTracker`: mitochondria.
    Mito,
}

impl Stain {
    pub(super) const ALL: [Self; 5] = [Self::Dna, Self::Er, Self::Rna, Self::Agp, Self::Mito];

    /// The stain of channel `c`.
    pub(super) const fn of(c: usize) -> Self {
        Self::ALL[c % Self::ALL.len()]
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Dna => "DNA",
            Self::Er => "ER",
            Self::Rna => "RNA",
            Self::Agp => "AGP",
            Self::Mito => "Mito",
        }
    }
}

/// A cell as one (t, z) shows it.
#[derive(Clone, Copy)]
struct View {
    at: [f32; 2],
    /// Height of the plane above the cell's centre, in half heights.
    height: f32,
    /// Radius of the section through the nucleus, relative to its largest one.
    section: f32,
}

/// Which cell each pixel of a plane belongs to, and where in it.
pub(super) struct Geometry {
    width: usize,
    views: Vec<View>,
    /// Cell of each pixel, from 1; 0 is background.
    owner: Vec<u16>,
    /// Nucleus of each pixel, likewise.
    nucleus: Vec<u16>,
    /// Distance from the centre of the cell, relative to its outline: below 1 inside.
    reach: Vec<f32>,
    /// The same for the neighbouring cell that comes second.
    second: Vec<f32>,
    /// Distance from the centre of the nucleus that is nearest, relative to its outline.
    depth: Vec<f32>,
    defocus: f32,
}

/// One pixel's place in its cell. Lengths are scaled to JUMP's pixels.
struct CellPoint<'a> {
    cell: &'a Cell,
    x: f32,
    y: f32,
    /// Distance from the centre relative to the nucleus's outline.
    n: f32,
    /// Within the nucleus: its section at this height.
    inside: bool,
    /// 1 in the cell's middle, 0 at its border and outside.
    inward: f32,
    /// How close the border to a touching cell is; 0 there.
    border: f32,
}

impl Geometry {
    pub(super) fn new(scene: &Scene) -> Self {
        let plane = scene.width * scene.height;
        Self {
            width: scene.width,
            views: Vec::new(),
            owner: vec![0; plane],
            nucleus: vec![0; plane],
            reach: vec![0.0; plane],
            second: vec![0.0; plane],
            depth: vec![0.0; plane],
            defocus: 0.0,
        }
    }

    /// Distance of the plane from the middle of the stack, in half heights of a nucleus.
    pub(super) fn defocus(&self) -> f32 {
        self.defocus
    }

    pub(super) fn draw(&mut self, scene: &Scene, t: usize, z: usize) {
        const BACKGROUND_DISTANCE: f32 = 9.0;
        let plane_height = scene.plane_height(z);
        self.defocus = plane_height.abs();
        self.views.clear();
        self.views.extend(scene.cells.iter().map(|cell| {
            let height = plane_height - cell.height;
            let section = (1.0 - height * height).max(0.0).sqrt();
            View { at: scene.position(cell, t), height, section }
        }));
        self.owner.fill(0);
        self.nucleus.fill(0);
        self.reach.fill(BACKGROUND_DISTANCE);
        self.second.fill(BACKGROUND_DISTANCE);
        self.depth.fill(BACKGROUND_DISTANCE);
        for (index, cell) in scene.cells.iter().enumerate() {
            self.draw_cell(scene, index, cell);
        }
    }

    fn draw_cell(&mut self, scene: &Scene, index: usize, cell: &Cell) {
        // The ragged edge of a cell strays this far from its outline.
        const EDGE_AMPLITUDE: f32 = 0.12;
        let label = index as u16 + 1;
        let view = self.views[index];
        // A nucleus above or below the plane is still seen, blurred.
        let section = view.section.max(0.6);
        let radius = (cell.outline.reach * (1.0 + EDGE_AMPLITUDE)).max(cell.nucleus.reach);
        let range = |center: f32, size: usize| {
            let (low, high) = (center - radius, center + radius + 1.0);
            (low.max(0.0) as usize).min(size)..(high.max(0.0) as usize).min(size)
        };
        let (columns, rows) = (range(view.at[0], scene.width), range(view.at[1], scene.height));
        let (coarse, fine) = (1.0 / (11.0 * scene.scale), 1.0 / (3.6 * scene.scale));
        for y in rows {
            let dy = y as f32 - view.at[1];
            for x in columns.clone() {
                let dx = x as f32 - view.at[0];
                let square = dx * dx + dy * dy;
                if square > radius * radius {
                    continue;
                }
                let (r, diamond_angle) = (square.sqrt(), DiamondAngle::of(dx, dy));
                let pixel = y * self.width + x;
                let n = r / (cell.nucleus.radius(diamond_angle) * section);
                if n < self.depth[pixel] {
                    self.depth[pixel] = n;
                    if n < 1.0 {
                        self.nucleus[pixel] = label;
                    }
                }
                let mut q = r / cell.outline.radius(diamond_angle);
                if q >= 1.0 + EDGE_AMPLITUDE {
                    continue;
                }
                if q > 0.3 {
                    let at = |period: f32| {
                        scene.lattice.at(cell.texture[0] + dx * period, cell.texture[1] + dy * period) - 0.5
                    };
                    q += EDGE_AMPLITUDE * (1.3 * at(coarse) + 0.7 * at(fine));
                }
                if q < self.reach[pixel] {
                    self.second[pixel] = self.reach[pixel];
                    self.reach[pixel] = q;
                    if q < 1.0 {
                        self.owner[pixel] = label;
                    }
                } else if q < self.second[pixel] {
                    self.second[pixel] = q;
                }
            }
        }
    }

    /// Appends the labels of the plane: nuclei, and cells with their nuclei.
    pub(super) fn label(&self, nuclei: &mut Vec<u16>, cells: &mut Vec<u16>) {
        let in_plane = |label: u16| label > 0 && self.views[usize::from(label) - 1].section > 0.0;
        nuclei.extend(self.nucleus.iter().map(|&label| if in_plane(label) { label } else { 0 }));
        cells.extend(
            self.owner.iter().zip(&self.nucleus).map(
                |(&cell, &nucleus)| {
                    if in_plane(nucleus) { nucleus } else { cell }
                },
            ),
        );
    }

    /// The light of channel `c`: 0 for nothing, around 1 for the stain's usual structures.
    pub(super) fn shade(&self, scene: &Scene, c: usize, light: &mut [f32]) {
        let stain = Stain::of(c);
        let unscale = 1.0 / scene.scale;
        // A further round of the same stains shall not repeat the first one's textures.
        let shift = (c / Stain::ALL.len()) as f32 * 17.3;
        for (pixel, light) in light.iter_mut().enumerate() {
            let (owner, nucleus) = (self.owner[pixel], self.nucleus[pixel]);
            let label = if nucleus > 0 { nucleus } else { owner };
            if label == 0 {
                *light = 0.0;
                continue;
            }
            let index = usize::from(label) - 1;
            let (cell, view) = (&scene.cells[index], self.views[index]);
            let (x, y) = ((pixel % self.width) as f32, (pixel / self.width) as f32);
            let q = self.reach[pixel];
            let point = CellPoint {
                cell,
                x: (x - view.at[0]) * unscale + shift,
                y: (y - view.at[1]) * unscale + shift,
                n: self.depth[pixel],
                inside: nucleus > 0,
                inward: (1.0 - q).max(0.0),
                border: (self.second[pixel] - q).max(0.0),
            };
            let focus = 1.0 / (1.0 + 0.9 * view.height * view.height);
            let texture = Texture { scene, shift };
            let value = match stain {
                Stain::Dna => texture.dna(&point),
                Stain::Er => texture.er(&point),
                Stain::Rna => texture.rna(&point),
                Stain::Agp => texture.agp(&point),
                Stain::Mito => texture.mito(&point),
            };
            *light = value * cell.gain[c % Stain::ALL.len()] * focus;
        }
        for speck in &scene.specks {
            self.draw_speck(speck, light);
        }
    }

    fn draw_speck(&self, speck: &Speck, light: &mut [f32]) {
        let [at_x, at_y, radius, brightness] = speck.0;
        let height = light.len() / self.width;
        let span = |center: f32, size: usize| {
            let low = (center - 2.0 * radius).max(0.0) as usize;
            low.min(size)..((center + 2.0 * radius) as usize + 1).min(size)
        };
        for y in span(at_y, height) {
            for x in span(at_x, self.width) {
                let (dx, dy) = (x as f32 - at_x, y as f32 - at_y);
                light[y * self.width + x] += brightness * bump((dx * dx + dy * dy) / (4.0 * radius * radius));
            }
        }
    }
}

/// A smooth hill: 1 at 0, 0 from 1 on. The argument is the square of the distance.
#[inline]
fn bump(square: f32) -> f32 {
    let f = (1.0 - square).max(0.0);
    f * f
}

/// The structures of each stain.
struct Texture<'a> {
    scene: &'a Scene,
    shift: f32,
}

impl Texture<'_> {
    /// Smooth noise with this period, fixed to the cell.
    #[inline]
    fn grain(&self, p: &CellPoint<'_>, period: f32) -> f32 {
        let t = p.cell.texture;
        self.scene.lattice.at(t[0] + p.x / period, t[1] + p.y / period)
    }

    /// A net of thin lines with this mesh.
    #[inline]
    fn net(&self, p: &CellPoint<'_>, mesh: f32) -> f32 {
        let t = p.cell.texture;
        // Bent by coarser noise, or the lattice would show.
        let bend = 1.6 * self.grain(p, 2.7 * mesh);
        self.scene.lattice.ridge(t[1] + p.x / mesh + bend, t[0] + p.y / mesh - bend)
    }

    /// Thickness of the cell: high over and around the nucleus, thin at the border.
    #[inline]
    fn thickness(p: &CellPoint<'_>) -> f32 {
        if p.cell.phase != Phase::Interphase {
            // A ball; condensed chromosomes keep everything else out.
            let q = 1.0 - p.inward;
            return (1.0 - q * q).sqrt() * if p.inside { 0.72 } else { 1.0 };
        }
        let from_nucleus = (p.n - 1.0).max(0.0);
        let edge = (p.inward * 4.5).min(1.0);
        edge * (0.16 + 0.84 / (1.0 + 1.7 * from_nucleus * from_nucleus))
    }

    /// How much of a nucleolus is here: 0 to 1.
    fn nucleolus(&self, p: &CellPoint<'_>) -> f32 {
        let scale = self.scene.scale;
        // Nucleoli are lumpy: the place is shifted about by noise.
        let lump = 3.2 * (self.grain(p, 4.0) - 0.5);
        let (x, y) = ((p.x - self.shift + lump) * scale, (p.y - self.shift - lump) * scale);
        p.cell.nucleoli.iter().fold(0.0, |most, &[nx, ny, r]| {
            let (dx, dy) = (x - nx, y - ny);
            let f = bump(0.5 * (dx * dx + dy * dy) / (r * r));
            f32::max(most, (2.0 * f).min(1.0))
        })
    }

    fn dna(&self, p: &CellPoint<'_>) -> f32 {
        if !p.inside {
            // Weak staining of the cytoplasm.
            return 0.012 * Self::thickness(p) * p.cell.gain[2] / p.cell.gain[0];
        }
        let dome = 0.62 + 0.38 * (1.0 - p.n * p.n).max(0.0).sqrt();
        let chromatin = match p.cell.phase {
            Phase::Interphase => {
                let (fine, coarse) = (self.grain(p, 2.1), self.grain(p, 5.5));
                0.66 + 0.36 * fine + 0.30 * coarse + 0.5 * (fine - 0.72).max(0.0)
            }
            Phase::Mitosis | Phase::Apoptosis => 0.8 + 0.4 * self.grain(p, 3.0),
        };
        dome * chromatin * (1.0 - 0.38 * self.nucleolus(p))
    }

    fn rna(&self, p: &CellPoint<'_>) -> f32 {
        let grain = 0.74 + 0.34 * self.grain(p, 4.5) + 0.18 * self.grain(p, 1.9);
        if p.inside && p.cell.phase == Phase::Interphase {
            return grain * (0.72 + 0.85 * self.nucleolus(p));
        }
        // Ribosomes keep a little off the nuclear envelope.
        let envelope = bump((p.n - 1.0) * (p.n - 1.0) * 90.0);
        grain * Self::thickness(p) * (1.22 - 0.25 * envelope)
    }

    fn er(&self, p: &CellPoint<'_>) -> f32 {
        if p.inside && p.cell.phase == Phase::Interphase {
            let envelope = bump((1.0 - p.n) * (1.0 - p.n) * 60.0);
            return 0.34 + 0.12 * self.grain(p, 3.0) + 0.3 * envelope;
        }
        let net = self.net(p, 3.4);
        Self::thickness(p) * (0.5 + 0.75 * net * net + 0.25 * self.grain(p, 6.0))
    }

    fn agp(&self, p: &CellPoint<'_>) -> f32 {
        let cell = p.cell;
        let edge = (p.inward * 6.0).min(1.0);
        let grain = 0.72 + 0.36 * self.grain(p, 3.0) + 0.2 * self.grain(p, 1.5);
        let mut value = edge * grain * (0.24 + 0.38 * Self::thickness(p));
        if p.inside && cell.phase == Phase::Interphase {
            value = grain * 0.98 * (1.0 - 0.1 * self.nucleolus(p));
        } else {
            // Stress fibres along the cell's axis, in some parts of the cell, most of them away from the nucleus.
            let along = p.x * cell.axis[0] + p.y * cell.axis[1];
            let bend = 1.2 * self.grain(p, 17.0);
            let across = p.y * cell.axis[0] - p.x * cell.axis[1];
            let t = cell.texture;
            let fibre = self.scene.lattice.ridge(t[0] + along / 21.0, t[1] + across / 2.1 + bend);
            let patch = self.grain(p, 13.0);
            value += 0.34 * edge * fibre * fibre * patch * patch * (p.n - 1.0).clamp(0.0, 1.0);
        }
        // Membranes: where cells touch, and at free borders.
        let touching = p.border * 16.0;
        value += 0.16 * edge / (1.0 + touching * touching);
        let border = p.inward * 8.0 - 0.7;
        value += 0.10 * bump(border * border);
        // The Golgi: worm-like stacks in a cloud beside the nucleus.
        let [gx, gy, gr] = cell.golgi;
        let scale = self.scene.scale;
        let (dx, dy) = ((p.x - self.shift) * scale - gx, (p.y - self.shift) * scale - gy);
        let cloud = bump((dx * dx + dy * dy) / (2.2 * gr * gr));
        if cloud > 0.0 {
            let net = self.net(p, 4.2);
            value += cloud * (0.30 + 3.4 * net * net * self.grain(p, 5.0));
        }
        // Vesicles.
        let vesicle = (self.grain(p, 1.6) - 0.74).max(0.0);
        let region = self.grain(p, 15.0);
        value + vesicle * edge * cell.vesicles * region * region
    }

    fn mito(&self, p: &CellPoint<'_>) -> f32 {
        if p.inside && p.cell.phase == Phase::Interphase {
            return 0.16 + 0.05 * self.grain(p, 3.0);
        }
        let near = Self::thickness(p);
        let net = self.net(p, 3.1);
        let worm = net * net;
        near * (0.34 + 0.95 * worm * (0.25 + self.grain(p, 8.0)))
    }
}
