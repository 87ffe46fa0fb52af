export {
  isJsonObject,
  type JsonObject,
  nonEmptyString,
  objectsIn,
  parseJsonObject,
  tokenCount,
} from './json-object.ts'
