// ranks: 1
// timeout: 30
// Files have MPI_ERRORS_RETURN where nobody has set a handler (MPI-5.0 section 14.7): every function of files returns its error, with a
// null handle and with no file at all. The job's handlers are the fatal ones that it started with.
#include "../support.hpp"

using namespace test;

namespace {

int extent(MPI_Datatype, MPI_Aint*, void*) { return MPI_SUCCESS; }

}  // namespace

int main() {
  init();
  MPI_File file = MPI_FILE_NULL, null = MPI_FILE_NULL;
  MPI_Offset offset = 0;
  MPI_Aint aint = 0;
  MPI_Datatype etype = MPI_DATATYPE_NULL, filetype = MPI_DATATYPE_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Info info = MPI_INFO_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  char datarep[MPI_MAX_DATAREP_STRING] = "";
  int value = 0;
  const int codes[] = {
      MPI_File_close(&null),
      MPI_File_set_size(null, 8),
      MPI_File_preallocate(null, 8),
      MPI_File_get_size(null, &offset),
      MPI_File_get_group(null, &group),
      MPI_File_get_amode(null, &value),
      MPI_File_set_info(null, MPI_INFO_NULL),
      MPI_File_get_info(null, &info),
      MPI_File_set_view(null, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL),
      MPI_File_get_view(null, &offset, &etype, &filetype, datarep),
      MPI_File_read_at(null, 0, &value, 1, MPI_INT, &status),
      MPI_File_write_at_all_c(null, 0, &value, 1, MPI_INT, &status),
      MPI_File_iread(null, &value, 1, MPI_INT, &request),
      MPI_File_iwrite_all(null, &value, 1, MPI_INT, &request),
      MPI_File_read_shared(null, &value, 1, MPI_INT, &status),
      MPI_File_write_ordered(null, &value, 1, MPI_INT, &status),
      MPI_File_read_all_begin(null, &value, 1, MPI_INT),
      MPI_File_read_all_end(null, &value, &status),
      MPI_File_seek(null, 0, MPI_SEEK_SET),
      MPI_File_get_position(null, &offset),
      MPI_File_get_byte_offset(null, 0, &offset),
      MPI_File_get_type_extent(null, MPI_INT, &aint),
      MPI_File_set_atomicity(null, 1),
      MPI_File_get_atomicity(null, &value),
      MPI_File_sync(null),
  };
  for (std::size_t i = 0; i < std::size(codes); ++i)
    if (codes[i] == MPI_SUCCESS) CHECK_EQ(static_cast<int>(i), -1);  // which one took a null handle for a file

  CHECK(MPI_File_open(MPI_COMM_SELF, "/no/such/folder/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS);
  CHECK(MPI_File_open(MPI_COMM_NULL, "file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS);
  CHECK(MPI_File_delete("/no/such/folder/file", MPI_INFO_NULL) != MPI_SUCCESS);
  CHECK(MPI_Register_datarep("native", nullptr, nullptr, extent, nullptr) != MPI_SUCCESS);
  return finish();
}
