// Unpack Chromium, its libraries and its fonts into node_modules/.chromium. The package unpacks into TMPDIR.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const modules = fileURLToPath(new URL("node_modules", import.meta.url));
process.env.TMPDIR = join(modules, ".chromium");
mkdirSync(process.env.TMPDIR, { recursive: true });
const { inflate } = await import("@sparticuz/chromium");
for (const name of ["chromium.br", "al2023.tar.br", "fonts.tar.br"]) {
  await inflate(join(modules, "@sparticuz", "chromium", "bin", name));
}
