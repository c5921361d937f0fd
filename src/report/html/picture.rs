//! Renders figures as PNG pictures. The font is part of the program, so a picture is the same on every
//! machine, even on one without fonts.

use std::sync::Arc;

use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::fontdb::{Database, Source};
use resvg::usvg::{Options, Tree};

use super::error::PageError;

/// Number of pixels per unit of the drawing's coordinates.
const SCALE: f32 = 2.0;

/// The mark in the metadata of every picture, which identifies it as a figure of a report.
pub(crate) const PICTURE_MARK: &str = "figure of a sweepline report";

/// Renders figures as PNG pictures, with the program's own font.
pub(crate) struct Pictures {
    options: Options<'static>,
}

impl Pictures {
    /// Loads only the program's own font, not the fonts of the machine.
    pub(crate) fn new() -> Pictures {
        let mut fonts = Database::new();
        fonts.load_font_source(Source::Binary(Arc::new(epaint_default_fonts::UBUNTU_LIGHT)));
        let family = fonts.faces().next().and_then(|face| Some(face.families.first()?.0.clone())).unwrap_or_default();
        fonts.set_sans_serif_family(&family);
        Pictures { options: Options { font_family: family, fontdb: Arc::new(fonts), ..Options::default() } }
    }

    /// Converts an SVG document to PNG. The title is stored in the metadata, where file search finds it.
    pub(crate) fn png(&self, svg: &str, title: &str) -> Result<Vec<u8>, PageError> {
        let unusable = |error: &dyn std::fmt::Display| PageError::Picture(error.to_string());
        let tree = Tree::from_str(svg, &self.options).map_err(|error| unusable(&error))?;
        let size = tree.size().to_int_size();
        let dots = size.scale_by(SCALE).ok_or_else(|| unusable(&"it has no size"))?;
        let (width, height) = (dots.width(), dots.height());
        let too_large = || unusable(&format!("{width} × {height} pixels are too many"));
        let mut pixels = Pixmap::new(width, height).ok_or_else(too_large)?;
        pixels.fill(Color::WHITE);
        resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
        // The background is opaque white, so the picture needs no alpha channel.
        let mut channels = Vec::with_capacity(pixels.data().len() / 4 * 3);
        pixels.data().chunks_exact(4).for_each(|dot| channels.extend_from_slice(&dot[..3]));
        encode(&channels, (width, height), title).map_err(|error| unusable(&error))
    }
}

fn encode(channels: &[u8], (width, height): (u32, u32), title: &str) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.add_text_chunk("Software".to_owned(), PICTURE_MARK.to_owned())?;
    encoder.add_itxt_chunk("Title".to_owned(), title.to_owned())?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(channels)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SVG: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"60\" height=\"20\" viewBox=\"0 0 120 40\">\
        <rect width=\"120\" height=\"40\" fill=\"#FFFFFF\"/>\
        <text x=\"4\" y=\"30\" font-family=\"sans-serif\" font-size=\"29\" fill=\"#1F2328\">Wg 12</text></svg>";

    #[test]
    fn a_picture_is_twice_as_large_white_and_has_text() {
        let png = Pictures::new().png(SVG, "Grüße").unwrap();
        let pixels = Pixmap::decode_png(&png).unwrap();
        assert_eq!((pixels.width(), pixels.height()), (120, 40));
        assert!(pixels.pixels().iter().all(|pixel| pixel.alpha() == 255), "the picture is opaque");
        let mark = png.windows(PICTURE_MARK.len()).position(|part| part == PICTURE_MARK.as_bytes());
        assert!(mark.is_some_and(|at| at < 200), "{mark:?}");
        let dark = |from: u32, to: u32| {
            let all = pixels.pixels().iter().zip(0u32..);
            all.filter(|(pixel, at)| (from..to).contains(&(at % 120)) && pixel.red() < 120).count()
        };
        assert!(dark(0, 60) > 60 && dark(60, 120) > 10, "{} and {}", dark(0, 60), dark(60, 120));
        assert_eq!(dark(110, 120), 0, "no ink below the text");
    }

    #[test]
    fn what_is_no_drawing_is_an_error_that_says_so() {
        let error = Pictures::new().png("<svg", "").unwrap_err().to_string();
        assert!(error.starts_with("a chart could not be converted to an image: "), "{error}");
    }
}
