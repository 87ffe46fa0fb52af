export { translationOf, translationsOf } from './directions.ts'
export type {
  AnswerContext,
  JsonObject,
  RequestContext,
  StreamTranslator,
  TranslatedAnswer,
  TranslatedUsage,
  Translation,
} from './translation.ts'
export { Untranslatable } from './translation.ts'
