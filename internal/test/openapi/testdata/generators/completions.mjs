// Fails unless an editor offers the known statuses after `const ready: Status = "` in each file.
import assert from "node:assert/strict";
import fs from "node:fs";
import ts from "typescript";

const files = process.argv.slice(2);
const service = ts.createLanguageService({
  getCompilationSettings: () => ({ strict: true, skipLibCheck: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext }),
  getScriptFileNames: () => files,
  getScriptVersion: () => "1",
  getScriptSnapshot: (name) => (fs.existsSync(name) ? ts.ScriptSnapshot.fromString(fs.readFileSync(name, "utf8")) : undefined),
  getCurrentDirectory: () => process.cwd(),
  getDefaultLibFileName: ts.getDefaultLibFilePath,
  fileExists: ts.sys.fileExists,
  readFile: ts.sys.readFile,
  directoryExists: ts.sys.directoryExists,
  getDirectories: ts.sys.getDirectories,
});
for (const file of files) {
  const before = 'const ready: Status = "';
  const at = fs.readFileSync(file, "utf8").indexOf(before) + before.length;
  const offered = service.getCompletionsAtPosition(file, at, {})?.entries.map((entry) => entry.name) ?? [];
  assert.ok(offered.includes("minutes_ready") && offered.includes("audio_rejected"), `${file} completes ${offered}`);
  console.log(`${file} completes ${offered.length} statuses`);
}
