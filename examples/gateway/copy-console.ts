/** Copies what the console has beside its scripts into the build, whose scripts are named `.js` and are there already. */
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { extname } from 'node:path'
import { VENDORED } from './console-page.ts'

const FROM = new URL('console/', import.meta.url)
const TO = new URL('../../dist/gateway/console/', import.meta.url)

cpSync(FROM, TO, { recursive: true, filter: (path) => !['.ts', '.json'].includes(extname(path)) })
for (const [name, source] of VENDORED)
  if (extname(name) !== '.js') cpSync(new URL(import.meta.resolve(source)), new URL(name, TO))
const page = new URL('index.html', TO)
writeFileSync(page, readFileSync(page, 'utf8').replaceAll(/(src="[^"]+)\.ts"/g, '$1.js"'))
