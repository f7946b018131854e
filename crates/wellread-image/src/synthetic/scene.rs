//! Where cells are and what they are like: everything about an image that does not depend on T, Z or channel.

use super::outline::Outline;
use super::random::{Lattice, Random};

/// Mean diameter of a nucleus in pixels (17 micrometres at 0.6): JUMP's size.
const NUCLEUS: f32 = 28.0;
/// Half the height of a nucleus in micrometres.
const HALF_HEIGHT_UM: f32 = 3.7;
/// Half heights that a deep stack spans.
const STACK_SPAN: f32 = 2.8;
/// Labels are 16 bits.
const MAX_CELLS: f32 = 60_000.0;

/// Distance of the planes of a stack, in half heights of a nucleus: a micrometre, less for deep stacks.
fn z_step(planes: usize) -> f32 {
    (1.0 / HALF_HEIGHT_UM).min(STACK_SPAN / planes.max(2) as f32)
}

/// Distance of the planes of a stack in micrometres.
pub(super) fn z_step_um(planes: usize) -> f64 {
    // Two decimals, as a microscope's stage is set.
    f64::from((z_step(planes) * HALF_HEIGHT_UM * 100.0).round().max(1.0)) / 100.0
}

/// The phase of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The usual state.
    Interphase,
    /// Dividing: chromosomes condensed to a bar, cell rounded up.
    Mitosis,
    /// Dying: a small, very bright nucleus in a shrunken cell.
    Apoptosis,
}

/// One cell; lengths in pixels, positions relative to the nucleus's centre unless said otherwise.
pub(super) struct Cell {
    /// Centre of the nucleus in the image at T = 0, (x, y); may lie outside.
    pub(super) at: [f32; 2],
    /// Movement of the cell from one T to the next.
    drift: [f32; 2],
    /// Height of the centre above the focal plane of the stack's middle, in half heights.
    pub(super) height: f32,
    pub(super) phase: Phase,
    /// Long axis (unit vector): stress fibres run along it.
    pub(super) axis: [f32; 2],
    pub(super) nucleus: Outline,
    pub(super) outline: Outline,
    /// Nucleoli: x, y, radius.
    pub(super) nucleoli: Vec<[f32; 3]>,
    /// The Golgi apparatus lies beside the nucleus: x, y, radius.
    pub(super) golgi: [f32; 3],
    /// Brightness of the vesicles in the cytoplasm.
    pub(super) vesicles: f32,
    /// Offset into the lattice, so that no two cells have the same texture.
    pub(super) texture: [f32; 2],
    /// Brightness of each stain.
    pub(super) gain: [f32; 5],
}

/// A speck of dirt: x, y, radius, brightness.
pub(super) struct Speck(pub(super) [f32; 4]);

/// One field of view.
pub(super) struct Scene {
    pub(super) width: usize,
    pub(super) height: usize,
    /// Planes of the stack.
    pub(super) depth: usize,
    /// Size of everything relative to JUMP's images: below 1 for images that are too small for whole cells.
    pub(super) scale: f32,
    pub(super) cells: Vec<Cell>,
    pub(super) specks: Vec<Speck>,
    pub(super) lattice: Lattice,
    /// Movement of the stage from one T to the next.
    stage: [f32; 2],
}

impl Scene {
    pub(super) fn new(random: &mut Random, height: usize, width: usize, depth: usize) -> Self {
        let lattice = Lattice::new(random);
        let diameter = (0.42 * height.min(width) as f32).clamp(3.0, NUCLEUS) * random.between(0.93, 1.07);
        let scale = diameter / NUCLEUS;
        let mut scene = Self {
            width,
            height,
            depth,
            scale,
            cells: Vec::new(),
            specks: Vec::new(),
            lattice,
            stage: [random.normal() * 0.5 * scale, random.normal() * 0.5 * scale],
        };
        for (at, partner) in scene.centres(random, diameter) {
            let cell = scene.cell(random, diameter, at, partner);
            scene.cells.push(cell);
        }
        let area = (width * height) as f32 / (scale * scale);
        let specks = (area / 60_000.0 + random.unit()).min(500.0) as usize;
        for _ in 0..specks {
            let at = [random.unit() * width as f32, random.unit() * height as f32];
            let (radius, brightness) = (random.between(0.8, 2.4) * scale, random.between(0.05, 0.5));
            scene.specks.push(Speck([at[0], at[1], radius, brightness]));
        }
        scene
    }

    /// Centres of the cells, over the image and a margin around it, denser here and sparser there. The second
    /// value is the direction to a sister cell, for cells that have just divided.
    fn centres(&self, random: &mut Random, diameter: f32) -> Vec<([f32; 2], Option<[f32; 2]>)> {
        let (width, height) = (self.width as f32, self.height as f32);
        let margin = 2.2 * diameter;
        let (span_x, span_y) = (width + 2.0 * margin, height + 2.0 * margin);
        let spacing = diameter * random.between(2.25, 2.8);
        let wanted = (span_x * span_y / (spacing * spacing)).min(MAX_CELLS) as usize + 1;
        let closest = 1.25 * diameter;
        let cluster = [random.between(0.0, 60.0), random.between(0.0, 60.0)];
        let columns = (span_x / closest) as usize + 1;
        let rows = (span_y / closest) as usize + 1;
        let mut bins: Vec<Vec<[f32; 2]>> = vec![Vec::new(); rows * columns];
        let mut places: Vec<([f32; 2], Option<[f32; 2]>)> = Vec::with_capacity(wanted + 1);
        for attempt in 0..4 * wanted {
            if places.len() >= wanted {
                break;
            }
            // The first one is put near the middle: no image is empty.
            let at = if attempt == 0 {
                [width * random.between(0.35, 0.65), height * random.between(0.35, 0.65)]
            } else {
                [random.unit() * span_x - margin, random.unit() * span_y - margin]
            };
            let period = 6.0 * diameter;
            let density = self.lattice.at(cluster[0] + at[0] / period, cluster[1] + at[1] / period);
            if attempt > 0 && random.unit() > 3.0 * (density - 0.22) {
                continue;
            }
            let column = (((at[0] + margin) / closest) as usize).min(columns - 1);
            let row = (((at[1] + margin) / closest) as usize).min(rows - 1);
            let crowded = (row.saturating_sub(1)..(row + 2).min(rows)).any(|r| {
                (column.saturating_sub(1)..(column + 2).min(columns)).any(|c| {
                    bins[r * columns + c].iter().any(|other| {
                        let (dx, dy) = (other[0] - at[0], other[1] - at[1]);
                        dx * dx + dy * dy < closest * closest
                    })
                })
            });
            if crowded {
                continue;
            }
            bins[row * columns + column].push(at);
            if random.chance(0.09) {
                // Sisters, their nuclei touching or nearly so.
                let toward = random.direction();
                let half = 0.5 * diameter * random.between(0.72, 1.0);
                places.push(([at[0] - toward[0] * half, at[1] - toward[1] * half], Some(toward)));
                places.push(([at[0] + toward[0] * half, at[1] + toward[1] * half], Some(toward)));
            } else {
                places.push((at, None));
            }
        }
        places
    }

    fn cell(&self, random: &mut Random, diameter: f32, at: [f32; 2], sister: Option<[f32; 2]>) -> Cell {
        let lattice = &self.lattice;
        let mut axis = random.direction();
        let phase = match random.unit() {
            p if p < 0.025 => Phase::Mitosis,
            p if p < 0.045 => Phase::Apoptosis,
            _ => Phase::Interphase,
        };
        // Radius of a disc of the nucleus's area; a cell about to divide has a larger nucleus and more DNA.
        let growth = random.unit();
        let mut radius = 0.5 * diameter * (0.86 + 0.26 * growth + 0.05 * random.normal());
        let mut elongation = random.between(1.06, 1.42);
        if random.chance(0.15) {
            elongation *= random.between(1.1, 1.3);
        }
        if let Some(toward) = sister {
            radius *= 0.8;
            // Sisters lie side by side.
            axis = [-toward[1], toward[0]];
            elongation = elongation.min(1.25);
        }
        match phase {
            Phase::Interphase => {}
            Phase::Mitosis => elongation = random.between(1.7, 2.0),
            Phase::Apoptosis => elongation = random.between(1.0, 1.4),
        }
        if phase != Phase::Interphase {
            radius *= 0.62;
        }
        radius = radius.max(1.2);
        let (long, short) = (radius * elongation.sqrt(), radius / elongation.sqrt());
        let nucleus = Outline::nucleus(random, lattice, axis, long, short);
        let size = diameter * (1.1 + 0.55 * random.unit() + 0.8 * random.unit() * random.unit());
        let outline = if phase == Phase::Interphase {
            let stretch = random.between(1.0, 1.55);
            Outline::spread_cell(random, &nucleus, axis, size, stretch)
        } else {
            Outline::round_cell(&nucleus, 0.55 * diameter * random.between(0.9, 1.15))
        };
        let nucleoli = if phase == Phase::Interphase {
            (0..=random.below(4))
                .map(|_| {
                    let (u, r) = (random.direction(), random.unit().sqrt() * 0.6);
                    let side = [-axis[1], axis[0]];
                    let place = [u[0] * r * long, u[1] * r * short];
                    [
                        place[0] * axis[0] + place[1] * side[0],
                        place[0] * axis[1] + place[1] * side[1],
                        radius * random.between(0.13, 0.27),
                    ]
                })
                .collect()
        } else {
            Vec::new()
        };
        let beside = random.direction();
        let apart = radius * random.between(1.1, 1.5);
        let golgi = [beside[0] * apart, beside[1] * apart, radius * random.between(0.5, 0.85)];
        // Staining is uneven. Rounded cells are thick, hence bright; DNA doubles before division.
        let thick = if phase == Phase::Interphase { 1.0 } else { 1.9 };
        let expression = 0.7 + 0.5 * random.unit() + 0.25 * random.normal().max(0.0);
        let mut gain = [0.0; 5];
        for gain in &mut gain {
            *gain = thick * expression * (1.0 + 0.16 * random.normal()).max(0.3);
        }
        let dna = match phase {
            Phase::Interphase => (0.75 + 0.6 * growth) * (1.0 + 0.16 * random.normal()).max(0.4),
            Phase::Mitosis => random.between(2.3, 3.2),
            Phase::Apoptosis => random.between(2.6, 4.6),
        };
        gain[0] = dna * if sister.is_some() { 1.15 } else { 1.0 };
        Cell {
            at,
            drift: [random.normal() * 0.9 * self.scale, random.normal() * 0.9 * self.scale],
            height: random.normal() * 0.2,
            phase,
            axis,
            nucleus,
            outline,
            nucleoli,
            golgi,
            vesicles: if random.chance(0.08) { random.between(4.0, 8.0) } else { random.between(0.6, 2.4) },
            texture: [random.between(0.0, 64.0), random.between(0.0, 64.0)],
            gain,
        }
    }

    /// Changes the cells as a compound does, by the strength of its effect (0 to 1). Nothing is drawn at random: the
    /// same cells are seen, changed.
    pub(super) fn apply_treatment(&mut self, effect: f32) {
        // The effects on DNA, ER, RNA, AGP and mitochondria.
        let stains = [0.9, 0.1, -0.25, 0.7, -0.6];
        for cell in &mut self.cells {
            cell.nucleus.scale(1.0 - 0.2 * effect);
            cell.vesicles += 2.5 * effect;
            for (gain, change) in cell.gain.iter_mut().zip(stains) {
                *gain *= 1.0 + change * effect;
            }
        }
    }

    /// Where a cell's centre is at a time.
    pub(super) fn position(&self, cell: &Cell, t: usize) -> [f32; 2] {
        // Cells slow down, so that a long series does not lose them.
        const SLOWDOWN_FRAMES: f32 = 60.0;
        let t = t as f32 / (1.0 + t as f32 / SLOWDOWN_FRAMES);
        [cell.at[0] + t * (cell.drift[0] + self.stage[0]), cell.at[1] + t * (cell.drift[1] + self.stage[1])]
    }

    /// Height of a plane of the stack above its middle, in half heights of a nucleus.
    pub(super) fn plane_height(&self, z: usize) -> f32 {
        (z as f32 - (self.depth as f32 - 1.0) / 2.0) * z_step(self.depth)
    }
}
