//! Sizes in pixels, as they are typed.

/// Parses `HxW`, such as `256x256`, or `H,W`.
pub fn parse_size(text: &str) -> Result<(usize, usize), String> {
    sides(text).ok_or_else(|| format!("{text:?} is no size; write HEIGHTxWIDTH, such as 256x256"))
}

/// Parses a size to crop or resize to: as [`parse_size`], or one number for a square.
pub fn parse_crop(text: &str) -> Result<(usize, usize), String> {
    let square = || side(text).map(|side| (side, side));
    sides(text)
        .or_else(square)
        .ok_or_else(|| format!("{text:?} is no size; write HEIGHTxWIDTH, such as 64x64, or 64 for a square"))
}

fn sides(text: &str) -> Option<(usize, usize)> {
    let (height, width) = text.split_once(['x', 'X', ','])?;
    Some((side(height)?, side(width)?))
}

fn side(text: &str) -> Option<usize> {
    text.trim().parse().ok().filter(|&n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_number_is_a_square_to_crop_to_alone() {
        for parse in [parse_size, parse_crop] {
            assert_eq!([parse("100x200"), parse("100,200")], [Ok((100, 200)), Ok((100, 200))]);
            assert!(["0x5", "0", "-64", "64x", "1.5", ""].iter().all(|text| parse(text).is_err()));
        }
        assert_eq!([parse_crop("64"), parse_crop(" 64 ")], [Ok((64, 64)), Ok((64, 64))]);
        assert!(parse_size("100").is_err());
    }
}
