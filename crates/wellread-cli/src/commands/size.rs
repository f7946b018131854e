//! Sizes in pixels, as they are typed.

/// Parses `HxW`, such as `256x256`, or `H,W`.
pub fn parse_size(text: &str) -> Result<(usize, usize), String> {
    let parse = |s: &str| s.trim().parse::<usize>().ok().filter(|&n| n > 0);
    text.split_once(['x', 'X', ','])
        .and_then(|(h, w)| Some((parse(h)?, parse(w)?)))
        .ok_or_else(|| format!("{text:?} is no size; write HEIGHTxWIDTH, such as 256x256"))
}
