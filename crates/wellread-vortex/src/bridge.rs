//! Record batches, arrays and schemas handed between the library's release of Arrow and this workspace's.

wellread_store::arrow_bridge!(arrow_array, arrow_schema);
