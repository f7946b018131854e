//! The functions of DuckDB's library that the crate `duckdb` calls.
//!
//! `duckdb` calls DuckDB through a table of functions when it is compiled for an extension, whose host fills the table. This
//! program fills it with what it finds in a library ([`super`]). The names are those in the sources of `duckdb` 1.20000.1;
//! one that is missing here panics with "DuckDB API not initialized" where it is called.

use libduckdb_sys::duckdb_ext_api_v1;
use libloading::Library;

macro_rules! functions {
    ($($name:ident)*) => {
        /// The table of functions, of `library`.
        ///
        /// # Errors
        /// The name of a function that the library does not have.
        pub(super) fn table(library: &Library) -> Result<duckdb_ext_api_v1, &'static str> {
            // SAFETY: every field of the table is an optional function, of which all zeros is none.
            let mut table: duckdb_ext_api_v1 = unsafe { std::mem::zeroed() };
            $(
                // SAFETY: DuckDB's C API never changes a function's signature once it is released, and the field's type is
                // that signature, generated from DuckDB's header.
                table.$name = Some(*unsafe { library.get(stringify!($name)) }.map_err(|_| stringify!($name))?);
            )*
            Ok(table)
        }
    };
}

functions! {
    duckdb_append_blob
    duckdb_append_bool
    duckdb_append_date
    duckdb_append_double
    duckdb_append_float
    duckdb_append_hugeint
    duckdb_append_int16
    duckdb_append_int32
    duckdb_append_int64
    duckdb_append_int8
    duckdb_append_interval
    duckdb_append_null
    duckdb_append_time
    duckdb_append_timestamp
    duckdb_append_uhugeint
    duckdb_append_uint16
    duckdb_append_uint32
    duckdb_append_uint64
    duckdb_append_uint8
    duckdb_append_value
    duckdb_append_varchar_length
    duckdb_appender_add_column
    duckdb_appender_clear_columns
    duckdb_appender_create
    duckdb_appender_create_ext
    duckdb_appender_destroy
    duckdb_appender_end_row
    duckdb_appender_error
    duckdb_appender_error_data
    duckdb_appender_flush
    duckdb_bind_blob
    duckdb_bind_boolean
    duckdb_bind_date
    duckdb_bind_decimal
    duckdb_bind_double
    duckdb_bind_float
    duckdb_bind_hugeint
    duckdb_bind_int16
    duckdb_bind_int32
    duckdb_bind_int64
    duckdb_bind_int8
    duckdb_bind_interval
    duckdb_bind_null
    duckdb_bind_time
    duckdb_bind_timestamp
    duckdb_bind_uhugeint
    duckdb_bind_uint16
    duckdb_bind_uint32
    duckdb_bind_uint64
    duckdb_bind_uint8
    duckdb_bind_value
    duckdb_bind_varchar_length
    duckdb_clear_bindings
    duckdb_close
    duckdb_column_count
    duckdb_column_logical_type
    duckdb_column_name
    duckdb_connect
    duckdb_create_array_value
    duckdb_create_blob
    duckdb_create_bool
    duckdb_create_config
    duckdb_create_date
    duckdb_create_decimal
    duckdb_create_double
    duckdb_create_error_data
    duckdb_create_float
    duckdb_create_hugeint
    duckdb_create_int16
    duckdb_create_int32
    duckdb_create_int64
    duckdb_create_int8
    duckdb_create_interval
    duckdb_create_list_value
    duckdb_create_map_value
    duckdb_create_null_value
    duckdb_create_struct_type
    duckdb_create_struct_value
    duckdb_create_time
    duckdb_create_timestamp
    duckdb_create_uhugeint
    duckdb_create_uint16
    duckdb_create_uint32
    duckdb_create_uint64
    duckdb_create_uint8
    duckdb_create_varchar_length
    duckdb_data_chunk_get_size
    duckdb_data_chunk_to_arrow
    duckdb_destroy_arrow_options
    duckdb_destroy_config
    duckdb_destroy_data_chunk
    duckdb_destroy_error_data
    duckdb_destroy_extracted
    duckdb_destroy_prepare
    duckdb_destroy_result
    duckdb_destroy_value
    duckdb_disconnect
    duckdb_error_data_error_type
    duckdb_error_data_has_error
    duckdb_error_data_message
    duckdb_execute_prepared
    duckdb_execute_prepared_streaming
    duckdb_extract_statements
    duckdb_extract_statements_error
    duckdb_fetch_chunk
    duckdb_free
    duckdb_interrupt
    duckdb_library_version
    duckdb_nparams
    duckdb_open
    duckdb_open_ext
    duckdb_parameter_name
    duckdb_prepare_error
    duckdb_prepare_extracted_statement
    duckdb_prepared_statement_column_count
    duckdb_prepared_statement_column_logical_type
    duckdb_prepared_statement_type
    duckdb_query
    duckdb_query_progress
    duckdb_register_scalar_function_set
    duckdb_register_table_function
    duckdb_result_error
    duckdb_result_get_arrow_options
    duckdb_row_count
    duckdb_rows_changed
    duckdb_set_config
    duckdb_to_arrow_schema
    duckdb_vector_size
}
