# `cmake --install`: library, headers, man pages. The tools install themselves (HeddleTools).
install(FILES ${public_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET mpi_abi)
  install(TARGETS mpi_abi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(EXISTS ${HEDDLE_GENERATED_DIR}/man)
  install(DIRECTORY ${HEDDLE_GENERATED_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR})
endif()
