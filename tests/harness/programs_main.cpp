// The `main` of an executable that holds the programs of a folder (programs.cmake): runs the one whose name it is called by, or
// without such a name the one that its first argument names.
#include <cstdio>
#include <cstring>

// Whichever of the two a program does not define has no address; neither has a program that is not in this executable, because it was
// linked for another alone.
#define PROGRAM(name, function)      \
  [[gnu::weak]] int function();      \
  [[gnu::weak]] int function(int, char**);
#include "programs.inc"
#undef PROGRAM

namespace {

struct Program {
  const char* name;
  int (*plain)();
  int (*with_arguments)(int, char**);

  bool here() const { return plain || with_arguments; }
  int run(int argc, char** argv) const { return plain ? plain() : with_arguments(argc, argv); }
};

const Program programs[] = {
#define PROGRAM(name, function) {name, function, function},
#include "programs.inc"
};

const Program* find(const char* path) {
  const char* slash = std::strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  for (const Program& program : programs)
    if (program.here() && std::strcmp(program.name, name) == 0) return &program;
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const Program* program = argc > 0 ? find(argv[0]) : nullptr;
  if (!program && argc > 1 && (program = find(argv[1]))) {
    --argc;
    ++argv;
  }
  if (program) return program->run(argc, argv);
  std::fprintf(stderr, "Call it by the name of one of its programs, or give the name as the first argument:\n");
  for (const Program& each : programs)
    if (each.here()) std::fprintf(stderr, "  %s\n", each.name);
  return 2;
}
