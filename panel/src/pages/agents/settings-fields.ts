// The settings that an agent's sections show and save. The mutation returns them all, so that the cache has each change.
import { graphql } from '../../api/graphql'

export const SettingsFields = graphql(`
  fragment SettingsFields on Agent @_unmask {
    id name role description instructions serverId imageId revision
    language responseFormat responseStyle noEmoji singleMessage
    modelOverride resolvedModel credentialChoice hasModelCredential modelCredentialProvider modelCredentialBaseUrl
    modeOverride modeProblem
    approvalAskThreshold approvalBlockThreshold approvalCategories approvalTimeoutMinutes notEnforced
    restartPolicy cpuOverride memoryMbOverride sessionResetMode sessionResetTokens
    monthlyBudgetMicro budgetAction costGuardMode costGuardAction costGuardTokensPerHour
    disabledToolGroups networkPrivileged
    timezone backupSchedule backupCron backupRetention backupFreeze
  }
`)
