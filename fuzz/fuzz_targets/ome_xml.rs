//! OME-XML, as in the first page of an OME-TIFF or in a companion file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let xml = wellread_image::ome_xml::decode(data);
    let _ = wellread_image::ome_xml::read(&xml);
    let _ = wellread_image::ome_xml::well_samples(&xml);
});
