//! A channel of an image whose channels lie behind each other, time point by time point.

/// One channel of an image: as many equal, equally spaced runs of floats as there are time points.
pub(super) struct Channel<'a> {
    /// The image.
    pub(super) floats: &'a mut [f32],
    /// Floats from one run to the next.
    pub(super) stride: usize,
    /// Start and length of a run.
    pub(super) start: usize,
    pub(super) len: usize,
}

impl Channel<'_> {
    /// Runs, in order.
    pub(super) fn runs(&self) -> impl Iterator<Item = &[f32]> {
        self.floats.chunks_exact(self.stride).map(|time| &time[self.start..self.start + self.len])
    }

    /// Runs, each with the number of its first value in the channel.
    pub(super) fn runs_mut(&mut self) -> impl Iterator<Item = (usize, &mut [f32])> {
        let (start, len) = (self.start, self.len);
        let times = self.floats.chunks_exact_mut(self.stride).enumerate();
        times.map(move |(t, time)| (t * len, &mut time[start..start + len]))
    }
}
