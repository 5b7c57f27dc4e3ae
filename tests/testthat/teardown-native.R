unload_native_library()
