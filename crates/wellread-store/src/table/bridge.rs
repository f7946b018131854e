//! Record batches between Arrow releases.

/// Defines functions that move schemas, record batches and arrays between this crate's Arrow release and another one:
/// `import_schema`, `import(their batch)`, `import_array` and `export(our batch)`. The caller names the other's
/// crates `arrow_array` (with its feature `ffi`) and `arrow_schema`. Buffers are shared, not copied.
///
/// The releases meet in the [Arrow C data interface](https://arrow.apache.org/docs/format/CDataInterface.html),
/// whose two structs have the same layout in every release.
#[macro_export]
macro_rules! arrow_bridge {
    ($array:ident, $schema:ident) => {
        /// Their schema in this crate's types.
        pub(crate) fn import_schema(
            theirs: &$schema::Schema,
        ) -> ::std::result::Result<$crate::table::arrow_schema::Schema, String> {
            let exported = $array::ffi::FFI_ArrowSchema::try_from(theirs).map_err(|e| e.to_string())?;
            // SAFETY: as in `hand_over`.
            let ours: $crate::table::arrow_array::ffi::FFI_ArrowSchema =
                unsafe { ::std::mem::transmute(exported) };
            $crate::table::arrow_schema::Schema::try_from(&ours).map_err(|e| e.to_string())
        }

        /// Their record batch as ours.
        #[allow(dead_code, reason = "an engine hands on whole batches or single arrays")]
        pub(crate) fn import(
            theirs: $array::RecordBatch,
        ) -> ::std::result::Result<$crate::table::arrow_array::RecordBatch, String> {
            use $crate::table::arrow_array as ours;
            let (array, schema) = hand_over(&$array::StructArray::from(theirs))?;
            // SAFETY: the array was exported a moment ago by a conforming producer.
            let data = unsafe { ours::ffi::from_ffi(array, &schema) }.map_err(|e| e.to_string())?;
            Ok(ours::RecordBatch::from(ours::StructArray::from(data)))
        }

        /// Their array as ours.
        #[allow(dead_code, reason = "an engine hands on whole batches or single arrays")]
        pub(crate) fn import_array(
            theirs: &dyn $array::Array,
        ) -> ::std::result::Result<$crate::table::arrow_array::ArrayRef, String> {
            use $crate::table::arrow_array as ours;
            let (array, schema) = hand_over(theirs)?;
            // SAFETY: as in `import`.
            let data = unsafe { ours::ffi::from_ffi(array, &schema) }.map_err(|e| e.to_string())?;
            Ok(ours::make_array(data))
        }

        /// Their array and its type as the structs of the C data interface, which this crate's release takes.
        fn hand_over(
            theirs: &dyn $array::Array,
        ) -> ::std::result::Result<
            (
                $crate::table::arrow_array::ffi::FFI_ArrowArray,
                $crate::table::arrow_array::ffi::FFI_ArrowSchema,
            ),
            String,
        > {
            let (array, schema) = $array::ffi::to_ffi(&theirs.to_data()).map_err(|e| e.to_string())?;
            // SAFETY: both releases define these structs as the C data interface does (`repr(C)`, the same
            // fields). So moving the bits does what passing them over in C would do; `transmute` checks the
            // sizes. Ownership moves with them: the source value is gone and its release callback is in the
            // copy.
            Ok(unsafe { (::std::mem::transmute(array), ::std::mem::transmute(schema)) })
        }

        /// Our record batch as theirs.
        pub(crate) fn export(
            batch: $crate::table::arrow_array::RecordBatch,
        ) -> ::std::result::Result<$array::RecordBatch, String> {
            use $crate::table::arrow_array as ours;
            let metadata: ::std::collections::HashMap<_, _> = batch.schema().metadata().clone().into();
            let data = ours::Array::to_data(&ours::StructArray::from(batch));
            let (array, schema) = ours::ffi::to_ffi(&data).map_err(|e| e.to_string())?;
            // SAFETY: as in `import`.
            let (array, schema): ($array::ffi::FFI_ArrowArray, $array::ffi::FFI_ArrowSchema) =
                unsafe { (::std::mem::transmute(array), ::std::mem::transmute(schema)) };
            // SAFETY: as in `import`.
            let data = unsafe { $array::ffi::from_ffi(array, &schema) }.map_err(|e| e.to_string())?;
            let theirs = $array::RecordBatch::from($array::StructArray::from(data));
            let schema = theirs.schema().as_ref().clone().with_metadata(metadata);
            theirs.with_schema(::std::sync::Arc::new(schema)).map_err(|e| e.to_string())
        }
    };
}
