/** Writes the JSON Schema of the config into the build, where editors find it by the `$schema` of a file. */
import { writeFileSync } from 'node:fs'
import { configJsonSchema } from 'express-model-gateway/config'

const file = new URL('../../dist/gateway.schema.json', import.meta.url)
writeFileSync(file, JSON.stringify(configJsonSchema()))
