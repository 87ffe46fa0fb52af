export {
  isJsonObject,
  type JsonObject,
  nonEmptyString,
  objectsIn,
  parseJson,
  parseJsonObject,
  tokenCount,
} from './json-object.ts'
